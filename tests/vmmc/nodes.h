/* SPDX-License-Identifier: BSD-3-Clause
 *
 * nodes.h - three processes that test VMMC: what all of its test programs need. Each runs one case, named by its
 * argument, in a job of three. They use what is installed only, so they run on one host, on several, and on the
 * virtual cluster.
 * Node 0 exports, nodes 1 and 2 import; what they have to tell each other they write into buffers, too. */
#ifndef RNL_TESTS_VMMC_NODES_H
#define RNL_TESTS_VMMC_NODES_H

#include <runnel/vmmc.h>

enum { PAGE = 4096, NODES = 3, FLAGS = 1000, BUFFER = 1, SECOND = 2 };
#define LONG_NS  ((int64_t)60 * 1000 * 1000 * 1000)
#define SHORT_NS ((int64_t)20 * 1000 * 1000)

struct node_case {
    const char *name; /* NULL ends the list */
    void (*run)(void);
    int meets; /* all three do at its end */
};
extern const struct node_case node_cases[]; /* the program's */
extern unsigned me;

/* Ends the process with status 1 and a sentence. */
__attribute__((noreturn, format(printf, 1, 2))) void node_fail(const char *format, ...);
#define CHECK(condition)                                                          \
    do {                                                                          \
        if (!(condition))                                                         \
            node_fail("%s:%d: %s does not hold", __FILE__, __LINE__, #condition); \
    } while (0)
/* The status that a call returns. */
#define IS(call, wanted)                                                                     \
    do {                                                                                     \
        int is_ = (call);                                                                    \
        if (is_ != (wanted))                                                                 \
            node_fail("%s:%d: %s is %s, not %s", __FILE__, __LINE__, #call,                  \
                      is_ > 0 ? "positive" : rnl_status_name(is_), rnl_status_name(wanted)); \
    } while (0)

void poll_once(void);
/* Tells node `to` that this one has reached its next step; waits until node `from` has told this one `n` times. */
void tell(unsigned to);
void hear(unsigned from, uint32_t n);
void meet(void);         /* all three are here */
void *pages(unsigned n); /* zeroed memory of malloc */
void until(const uint32_t *word, uint32_t value);
void fill(unsigned char *at, size_t n, unsigned seed);
int filled(const unsigned char *at, size_t n, unsigned seed);

#endif
