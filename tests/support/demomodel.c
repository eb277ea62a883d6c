/* demomodel.c: see demomodel.h. A lock keeps tests that start together from packing twice; a bundle
 * that is older than the test program is packed anew. */
#include "support/demomodel.h"
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include "support/test.h"

#define SOURCE "build/demo-model.gguf"
#define BUNDLE "build/tests/bundle"
#define MODEL BUNDLE "/model"

/* 0 when there is none. */
static int64_t changed_at(const char *path)
{
    struct stat st;
    return stat(path, &st) ? 0 : (int64_t)st.st_mtime;
}

static void run(const char *command)
{
    if (system(command)) fail_msg("%s: failed", command);
}

const char *demomodel(void)
{
    const char *emulator = getenv("RUN"), *b = getenv("B");
    char command[1024];
    if (emulator && *emulator) return NULL;
    run("mkdir -p build/tests");
    int lock = open("build/tests/bundle.lock", O_CREAT | O_RDWR | O_CLOEXEC, 0644);
    assert_true(lock >= 0 && !flock(lock, LOCK_EX));
    if (!changed_at(SOURCE)) run("./setup.sh --model");
    if (changed_at(MODEL "/config.json") < changed_at("/proc/self/exe")) {
        snprintf(command, sizeof command,
                 "rm -rf %s %s.partial && %s/ingot pack --no-known-answer %s %s >/dev/null 2>&1",
                 BUNDLE, BUNDLE, b && *b ? b : "build", SOURCE, BUNDLE);
        run(command);
    }
    close(lock);
    return MODEL;
}
