/* stage.h: the functions of stages 4 to 9, as pipeline.c calls them. Each refuses by filling an
 * api_error and returning false. */
#ifndef SERVER_STAGE_H
#define SERVER_STAGE_H
#include "server/request.h"

/* 4 admit: bounds; a place in the queue (under the server's lock); fills the admit event. */
bool stage_admit(server *sv, request *r, api_error *ret_error);
bool stage_admit_room(const server *sv, api_error *ret_error);
IG_MUST_USE ig_status stage_admit_event(server *sv, request *r, event *e, char storage[8][32]);

/* 5 schedule: a prompt's text and tokens (text workers), then sessions (engine). */
bool stage_schedule_prepare(server *sv, request *r, api_error *ret_error);
typedef enum started { STARTED, START_LATER, START_REFUSED } started;
started stage_schedule_start(server *sv, request *r, const audit_token *token);
/* Forms a step over running requests: decode rows first, then prompt chunks up to the budget. */
typedef struct step_row {
    request *r;
    int choice;
    bool prefill;
} step_row;
int32_t stage_schedule_form(server *sv, request *const *running, int32_t n_running,
                            ig_lm_feed *feeds, step_row *rows);

/* 6 and 7: rows for a step, and what came of them. */
int32_t stage_prefill_rows(server *sv, request *r, int32_t budget, ig_lm_feed *feeds,
                           step_row *rows, int32_t n, int32_t max);
int32_t stage_decode_rows(server *sv, request *r, ig_lm_feed *feeds, step_row *rows, int32_t n,
                          int32_t max);
void stage_prefill_took(server *sv, request *r, int32_t n_tokens, bool first_token, int64_t us);
void stage_decode_took(server *sv, int32_t n_tokens, int64_t us);

/* 8 deliver: one sampled token of a choice. */
bool stage_deliver(server *sv, request *r, int choice, const ig_lm_result *result,
                   api_error *ret_error);
/* The choice is over: the rest of its text. IG_ENOMEM: some of it is lost. */
IG_MUST_USE ig_status stage_deliver_rest(request *r, int choice);

/* 9 record: the done event; then the receipt and the last bytes. */
IG_MUST_USE ig_status stage_record_event(server *sv, request *r, event *e);
void stage_record_answer(server *sv, request *r);
#endif
