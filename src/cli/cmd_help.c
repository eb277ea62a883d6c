/* cmd_help.c: ingot help [COMMAND]. */
#include <stdio.h>
#include <string.h>
#include "cli/cli.h"

#define COMMAND(name, arguments, doc) extern const command_info command_##name;
#include "cli/commands.def"
#undef COMMAND

static int run(int argc, char **argv)
{
    char help[] = "--help";
    if (argc > 1) {
        char *args[] = {argv[1], help, NULL};
#define COMMAND(name, arguments, doc) \
    if (!strcmp(argv[1], #name) && strcmp(argv[1], "help")) return command_##name.run(2, args);
#include "cli/commands.def"
#undef COMMAND
        if (strcmp(argv[1], "help") && strcmp(argv[1], "--help") && strcmp(argv[1], "-h"))
            return cli_no_command(argv[1]);
    }
    printf("ingot: an auditable server for language models, and the tools around it\n\n");
#define COMMAND(name, arguments, doc) printf("  ingot %-10s %-28s %s\n", #name, arguments, doc);
#include "cli/commands.def"
#undef COMMAND
    printf("\nExit codes: 0 done, 1 the answer is no, 2 usage, 3 bad input, 4 the system refused, "
           "5 not supported.\n"
           "Each command: ingot help COMMAND.\n");
    return EXIT_DONE;
}

const command_info command_help = {run};
