/* main.c: finds the command. The only file that exits. */
#include <string.h>
#include "cli/cli.h"

#define COMMAND(name, arguments, doc) extern const command_info command_##name;
#include "cli/commands.def"
#undef COMMAND

typedef struct entry {
    const char *name;
    const command_info *info;
} entry;
static const entry entries[] = {
#define COMMAND(name, arguments, doc) {#name, &command_##name},
#include "cli/commands.def"
#undef COMMAND
};

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "help";
    if (!strcmp(name, "--help") || !strcmp(name, "-h")) name = "help";
    if (!strcmp(name, "--version")) name = "version";
    for (size_t i = 0; i < N_ELEM(entries); i++)
        if (!strcmp(entries[i].name, name))
            return entries[i].info->run(argc > 1 ? argc - 1 : 1, argc > 1 ? argv + 1 : argv);
    return cli_no_command(name);
}
