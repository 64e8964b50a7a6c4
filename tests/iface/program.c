/* SPDX-License-Identifier: BSD-3-Clause
 *
 * program.c - a program of the example interface, for a launched job and for the virtual cluster: each rank adds
 * 1, 2 ... to the sum of each rank, its own included, and prints what it has when all have done so. With an argument it
 * stays until it is killed, and deaths do not matter. */
#include <stdio.h>
#include <string.h>

#include "iface/example_iface.h"

enum { NUMBERS = 100 };

static int fails(const char *what, int status)
{
    if (status < 0)
        fprintf(stderr, "%s: %s\n", what, rnl_last_error()->text);
    return status < 0;
}

int main(int argc, char **argv)
{
    uint64_t numbers[NUMBERS], expected;
    rnl_endpoint *ep;
    struct tally *t;
    int64_t got = 0;
    (void)argv;
    for (unsigned i = 0; i < NUMBERS; i++)
        numbers[i] = i + 1;
    const struct rnl_options opt = {.size = sizeof opt, .flags = RNL_RESTARTED};
    if (fails("rnl_open", rnl_open(&ep, &opt)) || fails("tally_new", tally_new(ep, &t)))
        return 1;
    printf("made %u\n", tally_made());
    expected = (uint64_t)rnl_size(ep) * NUMBERS * (NUMBERS + 1) / 2;
    for (unsigned rank = 0; rank < rnl_size(ep); rank++)
        if (fails("tally_add", tally_add(t, rank, numbers, NUMBERS)) && argc == 1)
            return 1;
    while (got >= 0 && (tally_sum(t) < expected || argc > 1))
        got = rnl_wait(ep, -1);
    if (fails("rnl_wait", (int)got))
        return 1;
    printf("sum %llu, made %u\n", (unsigned long long)tally_sum(t), tally_made());
    int status = rnl_close(ep);
    tally_free(t);
    return fails("rnl_close", status);
}
