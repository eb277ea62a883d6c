/* order.h: the order in which a graph is evaluated. */
#ifndef ARRAY_ORDER_H
#define ARRAY_ORDER_H
#include "array/core/node.h"

#define ORDER_MAX_NODES ((size_t)1 << 28)

/* Nodes without a value below some roots, each after its inputs. Pointers are borrowed:
 * consumers and the roots' owners hold them. */
typedef struct order {
    ig_node **node;
    size_t n, cap;
} order;

/* Under the evaluation lock. Afterwards the mark of each node is its index here. */
IG_MUST_USE ig_status order_make(const ig_array *roots, int n_roots, order *ret_order);
void order_done(order *o);
static inline void order_auto(order *o) { order_done(o); }
#endif
