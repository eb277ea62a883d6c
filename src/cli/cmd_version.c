/* cmd_version.c: ingot version. */
#include <stdio.h>
#include "base/thread.h"
#include "cli/cli.h"
#include "ingot/device.h"
#include "ingot/ingot.h"
#include "server/build.h"

static int run(int argc, char **argv)
{
    bool json = false;
    text_list args;
    int code;
    const option_info options[] = {{"json", 0, NULL, "print JSON", OPT_FLAG, &json, 0, 0}, {0}};
    char cpu[128];
    cli_parse("version", argc, argv, options, &args, 0, 0, &code);
    if (code >= 0) return code;
    build_cpu(cpu, sizeof cpu);
    if (json)
        printf("{\"version\":\"%s\",\"kset\":\"%s\",\"isa\":\"%s\",\"cpu\":\"%s\",\"cpus\":%d}\n",
               IG_VERSION, ig_kset(), ig_device_isa(), cpu, thread_n_cpus());
    else
        printf("ingot %s\nnumeric contract %s\nkernels %s on %s, %d processors\n", IG_VERSION,
               ig_kset(), ig_device_isa(), cpu, thread_n_cpus());
    return EXIT_DONE;
}

const command_info command_version = {run};
