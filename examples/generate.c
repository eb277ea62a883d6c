/* generate.c: loads a model and streams an answer: public headers only.
 *
 *   build/ingot pack build/demo-model.gguf bundle
 *   make examples && build/examples/generate bundle/model "Why is the sky blue?"
 *
 * The question goes into JSON as it is: no quotes, no backslashes. */
#include <ingot/ingot.h>
#include <ingot/lm.h>
#include <stdio.h>
#include <string.h>

static bool print(void *user, const char *text, size_t n)
{
    (void)user;
    return fwrite(text, 1, n, stdout) == n && fflush(stdout) == 0;
}

static ig_status answer(ig_lm *lm, const char *question)
{
    char messages[4096];
    ig_lm_prompt *prompt = NULL;
    ig_lm_finish finish;
    const ig_lm_sampling sampling = {.temperature = 0.6f, .top_p = 0.9f, .seed = 1};
    int n =
        snprintf(messages, sizeof messages, "[{\"role\":\"user\",\"content\":\"%s\"}]", question);
    if ((size_t)n >= sizeof messages) return ig_fail(IG_ELIMIT, "the question is too long");
    ig_status s = ig_lm_prompt_chat(lm, messages, (size_t)n, NULL, &prompt);
    if (s == IG_OK) s = ig_lm_generate(lm, prompt, &sampling, 200, print, NULL, &finish);
    ig_lm_prompt_free(prompt);
    return s;
}

int main(int argc, char **argv)
{
    ig_lm *lm = NULL;
    if (argc != 3) return fprintf(stderr, "usage: generate MODEL_DIR QUESTION\n"), 2;
    ig_status s = ig_lm_open(argv[1], &(ig_lm_options){.context = 1024}, &lm);
    if (s == IG_OK) s = answer(lm, argv[2]);
    ig_lm_close(lm);
    puts("");
    if (s != IG_OK) fprintf(stderr, "generate: %s: %s\n", ig_status_name(s), ig_error_message());
    return s == IG_OK ? 0 : 1;
}
