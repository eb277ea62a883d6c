/* threefry.h: Threefry-2x32, 20 rounds (Salmon, Moraes, Dror and Shaw, 2011): the random numbers of
 * arrays and of sampling. */
#ifndef BASE_THREEFRY_H
#define BASE_THREEFRY_H
#include <stdint.h>

static inline uint32_t threefry_rotate(uint32_t x, int by) { return x << by | x >> (32 - by); }

static inline void threefry2x32(const uint32_t key[2], const uint32_t counter[2], uint32_t out[2])
{
    static const uint8_t rotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
    const uint32_t keys[3] = {key[0], key[1], key[0] ^ key[1] ^ 0x1BD11BDA};
    uint32_t a = counter[0] + keys[0], b = counter[1] + keys[1];
    for (uint32_t i = 0; i < 5; i++) {
        for (int k = 0; k < 4; k++) {
            a += b;
            b = threefry_rotate(b, rotations[i % 2][k]) ^ a;
        }
        a += keys[(i + 1) % 3];
        b += keys[(i + 2) % 3] + i + 1;
    }
    out[0] = a;
    out[1] = b;
}
#endif
