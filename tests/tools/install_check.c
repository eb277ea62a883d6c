/* install_check.c: uses what `make install` put in place: compiled as C99 and as C++ by
 * run_install.sh, linked shared and static. Prints the version and a sum. */
#include <ingot/ingot.h>
#include <stdio.h>

int main(void)
{
    const float v[3] = {1, 2, 3.5f};
    const int64_t dims[1] = {3};
    double sum = 0;
    ig_scope *scope = ig_scope_open();
    ig_array a = ig_array_copy(v, IG_F32, dims, 1);
    ig_status s = ig_item_f64(ig_sum(a, NULL, 0, false), &sum);
    if (s != IG_OK) fprintf(stderr, "%s\n", ig_error_message());
    if (ig_scope_close(scope) != IG_OK || s != IG_OK) return 1;
    printf("%s %g\n", IG_VERSION, sum);
    return 0;
}
