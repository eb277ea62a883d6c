/* cmd_chat.c: ingot ask (one question) and ingot chat (a conversation), through a running
 * server. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "cli/cli.h"
#include "cli/client.h"

#define MAX_ANSWER ((size_t)64 << 20)

typedef struct talk {
    const char *url, *key_file, *model, *system, *receipt;
    char *key;          /* owned */
    double temperature; /* below 0: the server's default */
    int64_t seed;       /* -1: the server draws one */
    int64_t max_tokens; /* 0: the server's default */
    bool json, stats;
    json_t *messages; /* owned: the conversation */
    buf line;         /* an event being read */
    buf answer;       /* text of this turn */
    buf raw;          /* body that is not an event stream */
    buf proof;        /* receipt of this turn */
    int64_t t_begin, t_first, t_end;
    int64_t n_tokens;
    bool finished;   /* the answer's end came */
    char error[512]; /* of an error event */
} talk;

static volatile sig_atomic_t interrupted;

static void on_interrupt(int sig)
{
    (void)sig;
    interrupted = 1;
}

static void talk_init(talk *t)
{
    t->url = "http://127.0.0.1:8080";
    t->temperature = t->seed = -1;
    t->messages = json_array();
    buf_init(&t->line, MAX_ANSWER);
    buf_init(&t->answer, MAX_ANSWER);
    buf_init(&t->raw, MAX_ANSWER);
    buf_init(&t->proof, MAX_ANSWER);
}

static void talk_auto(talk *t)
{
    json_decref(t->messages);
    mem_free(t->key);
    buf_done(&t->line);
    buf_done(&t->answer);
    buf_done(&t->raw);
    buf_done(&t->proof);
}

static ig_status add_message(talk *t, const char *role, const char *text, size_t n)
{
    json_t *content = json_stringn(text, n);
    if (!content) return ig_fail(IG_EFORMAT, "the text is not valid UTF-8");
    json_array_append_new(t->messages, json_pack("{s:s, s:o}", "role", role, "content", content));
    return IG_OK;
}

/* A terminal gets no control characters of a model's choosing, a file gets the very bytes. */
static void show(str text)
{
    if (isatty(STDOUT_FILENO))
        cli_put(stdout, text, true);
    else
        fwrite(text.p, 1, text.n, stdout);
    fflush(stdout);
}

/* One "data: {...}" of the stream. Text may hold NUL. */
static void take_event(talk *t, str data)
{
    json_t *root = json_loadb(data.p, data.n, JSON_ALLOW_NUL, NULL);
    const json_t *choice = json_array_get(json_object_get(root, "choices"), 0),
                 *error = json_object_get(root, "error"),
                 *content = json_object_get(json_object_get(choice, "delta"), "content");
    str text = {json_string_value(content), json_string_length(content)};
    const char *proof =
        json_string_value(json_object_get(json_object_get(root, "audit"), "receipt"));
    const json_t *usage = json_object_get(root, "usage");
    if (text.n) {
        if (!t->t_first) t->t_first = clock_mono_us();
        buf_add(&t->answer, text.p, text.n);
        show(text);
    }
    if (json_is_string(json_object_get(choice, "finish_reason"))) t->finished = true;
    if (proof) buf_str(&t->proof, proof);
    if (usage) t->n_tokens = json_integer_value(json_object_get(usage, "completion_tokens"));
    const char *message = json_string_value(json_object_get(error, "message"));
    if (error) snprintf(t->error, sizeof t->error, "%s", message ? message : "no reason given");
    json_decref(root);
}

static bool on_stream(void *user, const char *p, size_t n)
{
    talk *t = user;
    for (size_t i = 0; i < n; i++) {
        if (p[i] != '\n') {
            buf_char(&t->line, p[i]);
            continue;
        }
        if (t->line.n > 6 && !strncmp(t->line.data, "data: {", 7))
            take_event(t, (str){t->line.data + 6, t->line.n - 6});
        else if (t->line.n && strncmp(t->line.data, "data:", 5) && *t->line.data != ':')
            buf_add(&t->raw, t->line.data, t->line.n);
        buf_clear(&t->line);
    }
    return !interrupted;
}

static ig_status request_body(const talk *t, buf *b)
{
    buf_str(b, "{\"messages\":");
    json_write(t->messages, b);
    buf_str(b, ",\"stream\":true,\"stream_options\":{\"include_usage\":true}");
    if (t->model) {
        buf_str(b, ",\"model\":");
        buf_json_string(b, t->model, strlen(t->model));
    }
    if (t->max_tokens) buf_printf(b, ",\"max_tokens\":%lld", (long long)t->max_tokens);
    if (t->temperature >= 0) buf_printf(b, ",\"temperature\":%.9g", t->temperature);
    if (t->seed >= 0) buf_printf(b, ",\"seed\":%lld", (long long)t->seed);
    buf_char(b, '}');
    return buf_status(b);
}

static ig_status refused(talk *t, int http)
{
    json_t *root = NULL;
    buf_add(&t->raw, t->line.data ? t->line.data : "", t->line.n);
    if (t->raw.n) root = json_loads(t->raw.data, 0, NULL);
    const char *message =
        json_string_value(json_object_get(json_object_get(root, "error"), "message"));
    ig_status s =
        ig_fail(http == 401                  ? IG_EVERIFY
                : http == 429 || http == 503 ? IG_EBUSY
                                             : IG_EINVAL,
                "the server answered %d: %s%s", http, message ? message : "no reason given",
                http == 401 ? "; give the key with --api-key FILE" : "");
    json_decref(root);
    return s;
}

/* Sends the conversation, prints the answer as it comes, adds it to the conversation. */
static ig_status turn(talk *t)
{
    AUTO(buf) body = {0};
    int http = 0;
    buf_init(&body, MAX_ANSWER);
    buf_clear(&t->line), buf_clear(&t->answer), buf_clear(&t->raw), buf_clear(&t->proof);
    t->t_first = t->n_tokens = 0;
    *t->error = 0;
    t->finished = false;
    interrupted = 0;
    TRY(request_body(t, &body));
    t->t_begin = clock_mono_us();
    TRY(client_request(t->url, "POST", "/v1/chat/completions", t->key, (str){body.data, body.n},
                       on_stream, t, &http));
    t->t_end = clock_mono_us();
    if (http != 200) return refused(t, http);
    if (*t->error) return ig_fail(IG_EIO, "the server ended the answer: %s", t->error);
    if (!t->finished && !interrupted)
        return ig_fail(IG_EIO, "the server closed the stream before the answer's end");
    if (interrupted) fputs(" [stopped]", stdout);
    TRY(buf_status(&t->answer));
    return add_message(t, "assistant", t->answer.data ? t->answer.data : "", t->answer.n);
}

static ig_status save_receipt(const talk *t)
{
    if (!t->receipt || !t->proof.n) return IG_OK;
    return file_write_atomic(t->receipt, t->proof.data, t->proof.n, 0644);
}

static void tell_stats(const talk *t)
{
    double first = t->t_first ? (double)(t->t_first - t->t_begin) * 1e-6 : 0,
           rest = (double)(t->t_end - t->t_first) * 1e-6;
    fprintf(stderr, "[%lld tokens, first after %.2f s, then %.1f tokens/s%s]\n",
            (long long)t->n_tokens, first,
            t->n_tokens > 1 && rest > 0 ? (double)(t->n_tokens - 1) / rest : 0.0,
            t->proof.n ? ", recorded" : "");
}

static ig_status read_key(talk *t)
{
    AUTO(buf) text = {0};
    buf_init(&text, 0);
    if (!t->key_file) return IG_OK;
    TRY(file_read(t->key_file, 4096, &text));
    text.data[strcspn(text.data, "\r\n")] = 0;
    t->key = mem_strdup(text.data);
    return t->key ? IG_OK : IG_ENOMEM;
}

static ig_status start(talk *t)
{
    TRY(read_key(t));
    return t->system ? add_message(t, "system", t->system, strlen(t->system)) : IG_OK;
}

/* The prompt of ask: the arguments joined, or standard input. */
static ig_status read_prompt(const text_list *args, buf *prompt)
{
    char block[4096];
    size_t n;
    for (int i = 0; i < args->n; i++) {
        if (i) buf_char(prompt, ' ');
        buf_str(prompt, args->text[i]);
    }
    while (!args->n && (n = fread(block, 1, sizeof block, stdin)) > 0) buf_add(prompt, block, n);
    return buf_status(prompt);
}

static ig_status ask(talk *t, const text_list *args)
{
    AUTO(buf) prompt = {0};
    buf_init(&prompt, MAX_ANSWER);
    TRY(start(t));
    TRY(read_prompt(args, &prompt));
    if (!prompt.n) return ig_fail(IG_EINVAL, "no prompt: give it as argument or on standard input");
    TRY(add_message(t, "user", prompt.data, prompt.n));
    TRY(turn(t));
    if (isatty(STDOUT_FILENO)) fputs("\n", stdout); /* a file gets the answer and nothing else */
    TRY(save_receipt(t));
    if (t->stats) tell_stats(t);
    return IG_OK;
}

/* A command that starts with a slash; false: leave. */
static bool command(talk *t, const char *line, bool *ret_handled)
{
    *ret_handled = true;
    if (!strcmp(line, "/bye") || !strcmp(line, "/quit")) return false;
    if (!strcmp(line, "/new")) {
        json_array_clear(t->messages);
        if (t->system && add_message(t, "system", t->system, strlen(t->system)) != IG_OK)
            return false;
        fputs("(a new conversation)\n", stdout);
    } else if (!strncmp(line, "/receipt", 8)) {
        const char *path = line[8] == ' ' ? line + 9 : "receipt";
        if (!t->proof.n)
            fputs("(no answer yet)\n", stdout);
        else if (file_write_atomic(path, t->proof.data, t->proof.n, 0644) == IG_OK)
            printf("(receipt of the last answer in %s)\n", path);
        else
            printf("(%s)\n", ig_error_message());
    } else if (!strcmp(line, "/help")) {
        fputs("/new start again   /receipt [FILE] save the last answer's receipt   /bye leave   "
              "Ctrl-C stops an answer\n",
              stdout);
    } else {
        *ret_handled = false;
    }
    return true;
}

/* One line of standard input without its end; false at the end of the input. */
static bool read_line(buf *line)
{
    char block[4096];
    buf_clear(line);
    while (fgets(block, sizeof block, stdin)) {
        size_t n = strcspn(block, "\r\n");
        buf_add(line, block, n);
        if (block[n]) return line->status == IG_OK;
    }
    return line->n > 0 && line->status == IG_OK;
}

/* A refusal in a conversation on a terminal: say it, forget the message, go on. */
static ig_status forgive(talk *t, ig_status s)
{
    if (s == IG_OK || s == IG_EIO) return s;
    cli_put(stderr, str_of(ig_error_message()), false);
    fputc('\n', stderr);
    json_array_remove(t->messages, json_array_size(t->messages) - 1);
    ig_error_clear();
    return IG_OK;
}

static ig_status chat(talk *t)
{
    AUTO(buf) line = {0};
    bool terminal = isatty(STDIN_FILENO), handled;
    buf_init(&line, MAX_ANSWER);
    TRY(start(t));
    if (terminal) printf("Talking with %s. /help for commands, /bye or Ctrl-D to leave.\n", t->url);
    for (;;) {
        if (terminal) fputs("\n> ", stdout), fflush(stdout);
        if (!read_line(&line)) return buf_status(&line);
        if (!line.n) continue;
        if (!command(t, line.data, &handled)) return IG_OK;
        if (handled) continue;
        TRY(add_message(t, "user", line.data, line.n));
        ig_status s = turn(t);
        if (s == IG_OK) fputs("\n", stdout);
        if (s == IG_OK && terminal) tell_stats(t);
        TRY(terminal ? forgive(t, s) : s);
        if (s == IG_OK) TRY(save_receipt(t));
    }
}

static int run(const char *name, int argc, char **argv)
{
    __attribute__((cleanup(talk_auto))) talk t = {0};
    const char *temperature = NULL;
    text_list args;
    int code;
    talk_init(&t);
    const option_info options[] = {
        {"url", 'u', "URL", "http://ADDRESS:PORT or unix:PATH; default http://127.0.0.1:8080",
         OPT_TEXT, &t.url, 0, 0},
        {"api_key", 0, "FILE", "file that holds the API key", OPT_TEXT, &t.key_file, 0, 0},
        {"model", 0, "NAME", "model to ask for; default: whatever is served", OPT_TEXT, &t.model, 0,
         0},
        {"system", 's', "TEXT", "system message", OPT_TEXT, &t.system, 0, 0},
        {"max_tokens", 'n', "N", "longest answer in tokens; default: the server's", OPT_INT,
         &t.max_tokens, 1, 1 << 20},
        {"temperature", 0, "X", "0: always the most likely token; to 2; default 1", OPT_TEXT,
         &temperature, 0, 0},
        {"seed", 0, "N", "seed of the sampler; default: drawn by the server and logged", OPT_INT,
         &t.seed, 0, INT64_MAX},
        {"receipt", 0, "FILE", "write the receipt of the (last) answer", OPT_TEXT, &t.receipt, 0,
         0},
        {"stats", 0, NULL, "say how fast the answer came", OPT_FLAG, &t.stats, 0, 0},
        {0},
    };
    bool is_ask = !strcmp(name, "ask");
    cli_parse(name, argc, argv, options, &args, 0, is_ask ? TEXT_LIST_MAX : 0, &code);
    if (code >= 0) return code;
    if (temperature && (!str_double(str_of(temperature), &t.temperature) || t.temperature < 0))
        return cli_usage(name, "--temperature: '%s' is not a number from 0 to 2", temperature);
    struct sigaction stop = {.sa_handler = on_interrupt};
    if (!is_ask) sigaction(SIGINT, &stop, NULL);
    ig_status s = is_ask ? ask(&t, &args) : chat(&t);
    return s == IG_OK ? EXIT_DONE : cli_fail(name, s);
}

static int run_ask(int argc, char **argv) { return run("ask", argc, argv); }

static int run_chat(int argc, char **argv) { return run("chat", argc, argv); }

const command_info command_ask = {run_ask};
const command_info command_chat = {run_chat};
