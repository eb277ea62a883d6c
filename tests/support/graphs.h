/* graphs.h: random functions of arrays, the same for a seed whether they are traced or called. They
 * use elementwise chains, broadcasts, casts, views, reductions, norms, matmuls, int8 rows, gathers,
 * and states that are read, written and read again. */
#ifndef SUPPORT_GRAPHS_H
#define SUPPORT_GRAPHS_H
#include "ingot/ingot.h"

#define GRAPH_T 13    /* capacity of the row symbol T */
#define GRAPH_O 5     /* capacity of O */
#define GRAPH_COLS 64 /* columns of inputs and states */
#define GRAPH_ROWS 16 /* rows of a state */
#define GRAPH_N_INPUTS 5
#define GRAPH_N_STATES 2
#define GRAPH_N_OUTPUTS 4

extern const ig_symbol graph_symbols[2]; /* T, O */
extern const ig_input graph_inputs[GRAPH_N_INPUTS];

typedef struct graph {
    unsigned seed;
    int n_ops;
    ig_array state[GRAPH_N_STATES]; /* in: first versions; out: last versions */
    int out_rows[GRAPH_N_OUTPUTS];  /* out: for graph_rows */
} graph;

/* Builds the function over inputs in the order of graph_inputs. */
void graph_build(graph *g, const ig_array *inputs, ig_array *ret_outputs);
/* Bytes for the first n_rows rows of input i, from a seed of its own. */
void graph_fill(int i, unsigned seed, int64_t n_rows, void *out);
/* How many rows output i has when T is t and O is o. */
int64_t graph_rows(const graph *g, int i, int64_t t, int64_t o);
/* Do n elements hold the same bits? Any NaN equals any NaN. */
bool graph_same(const void *a, const void *b, int64_t n, ig_dtype dtype);
#endif
