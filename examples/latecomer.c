/* SPDX-License-Identifier: BSD-3-Clause
 *
 * latecomer - a replicated state machine that a rank joins while it runs.
 *
 *     runnel run -n 3 latecomer 1000
 *
 * The state is a ledger: the balances of a few accounts. A command moves money, unless the account has too little,
 * and each rank carries out the commands that the group delivers. The last rank joins when the others are halfway: it
 * is given the ledger as it was before the view with it, and from there on carries out what all do. */
#include <runnel/group.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GROUP = 1, HALFWAY = 2, ACCOUNTS = 16, OPENING = 100 };

struct command {
    unsigned from, to;
    long amount;
};
struct ledger {
    long balance[ACCOUNTS];
    unsigned long done, refused;
};

static struct ledger ledger;
static unsigned members, halfway;

static void deliver(rnl_group *g, const struct rnl_group_message *m, void *ctx)
{
    const struct command *c = m->buf;
    (void)g, (void)ctx;
    ledger.done++;
    if (m->n != sizeof *c || c->from >= ACCOUNTS || c->to >= ACCOUNTS)
        return;
    if (ledger.balance[c->from] < c->amount) {
        ledger.refused++;
        return;
    }
    ledger.balance[c->from] -= c->amount;
    ledger.balance[c->to] += c->amount;
}

static void changed(rnl_group *g, const struct rnl_group_view *v, void *ctx)
{
    (void)g, (void)ctx;
    members = v->count;
}

static void save(rnl_group *g, void *ctx)
{
    (void)ctx;
    if (rnl_group_put_state(g, &ledger, sizeof ledger) < 0)
        fprintf(stderr, "%s\n", rnl_last_error()->text);
}

static void load(rnl_group *g, const void *buf, size_t n, void *ctx)
{
    (void)g, (void)ctx, (void)n;
    memcpy(&ledger, buf, sizeof ledger);
    printf("joins after %lu commands\n", ledger.done);
}

static int is_halfway(const void *buf, size_t n, unsigned peer, void *ctx)
{
    (void)buf, (void)n, (void)peer, (void)ctx;
    halfway++;
    return RNL_DONE;
}

static void check(int64_t status)
{
    if (status >= 0)
        return;
    fprintf(stderr, "%s\n", rnl_last_error()->text);
    exit(1);
}

int main(int argc, char **argv)
{
    const unsigned long commands = argc > 1 ? strtoul(argv[1], NULL, 10) : 1000;
    unsigned first[64];
    rnl_endpoint *ep;
    rnl_group *g;
    check(rnl_open(&ep, NULL));
    const unsigned rank = rnl_rank(ep), last = rnl_size(ep) - 1;
    if (last == 0 || last > sizeof first / sizeof first[0])
        return 1;
    for (unsigned i = 0; i < ACCOUNTS; i++)
        ledger.balance[i] = OPENING;
    for (unsigned i = 0; i < last; i++)
        first[i] = i;
    const struct rnl_group_options opt = {.size = sizeof opt,
                                          .handler = GROUP,
                                          .deliver = deliver,
                                          .changed = changed,
                                          .first_count = last, /* all ranks but the last one */
                                          .first_ranks = first,
                                          .save = save,
                                          .load = load};
    check(rnl_handler_whole(ep, HALFWAY, is_halfway, NULL, 0));
    while (rank == last && halfway < last)
        check(rnl_wait(ep, -1));
    check(rnl_group_open(ep, &opt, &g));
    for (unsigned long i = 0; i < commands; i++) {
        const struct command c = {.from = (unsigned)(i * 5 + rank) % ACCOUNTS,
                                  .to = (unsigned)(i * 3 + rank) % ACCOUNTS,
                                  .amount = (long)(i % 60)};
        const struct rnl_buffer piece = {&c, sizeof c};
        if (i == commands / 2 && rank != last)
            check(rnl_send(ep, last, HALFWAY, NULL, 0));
        check(rnl_group_send(g, &piece, 1, 0)); /* the joiner's first waits until it is a member */
    }
    while (ledger.done < commands * (last + 1))
        check(rnl_wait(ep, -1));
    unsigned long sum = ledger.refused;
    for (unsigned i = 0; i < ACCOUNTS; i++)
        sum = sum * 31 + (unsigned long)ledger.balance[i];
    printf("rank %u of %u: %lu commands, ledger %lx\n", rank, members, ledger.done, sum);
    check(rnl_group_leave(g, -1));
    return rnl_close(ep) < 0;
}
