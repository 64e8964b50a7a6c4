/* SPDX-License-Identifier: BSD-3-Clause
 *
 * jacobi.c - Jacobi's method on a shared vector; see jacobi.h. The paper says no time of its computing, so what is
 * computed is counted, as all that hosts do is. */
#include "sim/myrinet/systems/orca/jacobi.h"

#include <string.h>

enum { STORE = 0, STEP = 1, VALUE = 2 };
/* Host operations of `IF i /= j THEN s -:= a[i][j] * x[j]` in a loop: a comparison; for a's element two bounds, an
 * address, a load; for x's two bounds and a load; a product, a difference; the loop's sum and comparison. And of a
 * row: division, difference to the last iteration and its amount, two stores, the outer loop. */
enum { INNER = 12, ROW = 10 };

static void put_double(const struct orca *o, uint32_t at, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    myri_host_set_word(o->side->host, at, (uint32_t)(bits >> 32));
    myri_host_set_word(o->side->host, at + 4, (uint32_t)bits);
}

static double get_double(const struct orca *o, uint32_t at)
{
    uint64_t bits = (uint64_t)myri_host_word(o->side->host, at) << 32 | myri_host_word(o->side->host, at + 4);
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* A part of the next vector, whose first row and number of rows lie before it. What is stored is copied once more. */
static int store(struct orca *o, struct orca_object *x, struct orca_arguments *a)
{
    struct jacobi *j = x->state;
    uint32_t first = myri_host_word(o->side->host, a->in), n = myri_host_word(o->side->host, a->in + 4);
    if (first > j->equations || n > j->equations - first || a->in_bytes != JACOBI_HEAD + n * JACOBI_NUMBER) {
        myri_hw_fault(o->side->hw, "node %u: %u rows from %u on are stored, of %u", o->side->node, n, first,
                      j->equations);
        return 1;
    }
    myri_task_spend(o->side->task, myri_machine_bytes(&o->side->hw->machine, MYRI_M_copy_rate, n * JACOBI_NUMBER),
                    "copy");
    for (uint32_t i = 0; i < n; i++)
        j->next[first + i] = get_double(o, a->in + JACOBI_HEAD + i * JACOBI_NUMBER);
    if (++j->stored == j->nodes) { /* exchanged, not copied */
        memcpy(j->x, j->next, j->equations * sizeof j->x[0]);
        j->stored = 0;
        j->round++;
    }
    return 1;
}

static int step(struct orca *o, struct orca_object *x, struct orca_arguments *a)
{
    const struct jacobi *j = x->state;
    return j->round >= myri_host_word(o->side->host, a->in);
}

/* The vector, which an operation gives back as a copy. */
static int value(struct orca *o, struct orca_object *x, struct orca_arguments *a)
{
    const struct jacobi *j = x->state;
    a->out_bytes = j->equations * JACOBI_NUMBER;
    myri_task_spend(o->side->task, myri_machine_bytes(&o->side->hw->machine, MYRI_M_copy_rate, a->out_bytes), "copy");
    for (uint32_t i = 0; i < j->equations; i++)
        put_double(o, a->out + i * JACOBI_NUMBER, j->x[i]);
    return 1;
}

static const struct orca_type vector = {{[STORE] = store, [STEP] = step, [VALUE] = value}, 1u << STORE};

void jacobi_open(struct jacobi *j, struct orca *o, uint32_t equations)
{
    uint32_t nodes = o->side->nodes;
    memset(j, 0, sizeof *j);
    j->equations = equations;
    j->nodes = nodes;
    j->object = orca_new(o, &vector, nodes > 1 ? ORCA_EVERYWHERE : 0, j);
    j->in = myri_host_take(o->side->host, JACOBI_HEAD + equations * JACOBI_NUMBER, 0);
    j->out = myri_host_take(o->side->host, equations * JACOBI_NUMBER, 0);
}

/* A diagonal of n, ones beside it, and ones on the right. */
static double row_of(const struct jacobi *j, const double *x, uint32_t i)
{
    double s = 1;
    for (uint32_t k = 0; k < j->equations; k++)
        if (k != i)
            s -= x[k];
    return s / j->equations;
}

uint32_t jacobi_run(struct jacobi *j, struct orca *o, uint32_t iterations)
{
    struct myri_host *h = o->side->host;
    uint32_t me = o->side->node, first = j->equations * me / j->nodes, sum = 0;
    uint32_t rows = j->equations * (me + 1) / j->nodes - first;
    uint64_t computing = (uint64_t)rows * (j->equations * INNER + ROW) * o->side->hw->t.operation;
    double x[JACOBI_MOST];
    for (uint32_t k = 1; k <= iterations && !o->side->hw->fault[0]; k++) {
        struct orca_arguments read = {.in = j->in, .in_bytes = 4, .out = j->out};
        if (!orca_invoke(o, j->object, VALUE, &read))
            return 0;
        for (uint32_t i = 0; i < j->equations; i++)
            x[i] = get_double(o, j->out + i * JACOBI_NUMBER);
        panda_compute(&o->on.panda, computing);
        myri_host_set_word(h, j->in, first);
        myri_host_set_word(h, j->in + 4, rows);
        for (uint32_t i = 0; i < rows; i++)
            put_double(o, j->in + JACOBI_HEAD + i * JACOBI_NUMBER, row_of(j, x, first + i));
        struct orca_arguments part = {.in = j->in, .in_bytes = JACOBI_HEAD + rows * JACOBI_NUMBER};
        if (!orca_invoke(o, j->object, STORE, &part))
            return 0;
        struct orca_arguments wait = {.in = j->in, .in_bytes = 4};
        myri_host_set_word(h, j->in, k);
        if (!orca_invoke(o, j->object, STEP, &wait))
            return 0;
    }
    for (uint32_t i = 0; i < j->equations; i++) {
        uint64_t bits;
        memcpy(&bits, &j->x[i], sizeof bits);
        sum = sum * 31 + (uint32_t)(bits ^ bits >> 32);
    }
    return sum;
}
