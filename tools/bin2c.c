/* bin2c.c: the bytes of a file as a C initialiser, for text that travels inside a library.
 *
 *   bin2c src/audit/embed/verify.sh build/gen/audit/embed/verify.sh.inc
 *
 * A final 0 that is not part of the file lets text be used as a string:
 *   static const char verify_sh[] = {
 *   #include "audit/embed/verify.sh.inc"
 *   };                                       // sizeof verify_sh - 1 bytes */
#include <stdio.h>

int main(int argc, char **argv)
{
    FILE *in = argc == 3 ? fopen(argv[1], "rb") : NULL;
    FILE *out = in ? fopen(argv[2], "wb") : NULL;
    if (!out) {
        fprintf(stderr, "bin2c: usage: bin2c FILE FILE.inc, both accessible\n");
        return 1;
    }
    int c;
    for (int n = 1; (c = getc(in)) != EOF; n++)
        fprintf(out, "'\\x%02x',%s", (unsigned)c, n % 16 ? "" : "\n");
    fprintf(out, "0\n");
    int failed = ferror(in) | fclose(out);
    fclose(in);
    return failed != 0;
}
