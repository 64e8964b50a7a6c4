/* SPDX-License-Identifier: BSD-3-Clause
 *
 * joined.c - a rank for the tests of the rendezvous: opens, says "rank R of N", lives until FILE is there (if its
 * argument names one), closes, and says "closed" or why not. It exits with the number in EXIT. Without arguments it
 * closes at once. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "runnel/runnel.h"

int main(int argc, char **argv)
{
    rnl_endpoint *ep;
    const char *code = getenv("EXIT");
    if (rnl_open(&ep, NULL) < 0) {
        fprintf(stderr, "refused: %s\n", rnl_last_error()->text);
        return 3;
    }
    printf("rank %u of %u\n", rnl_rank(ep), rnl_size(ep));
    fflush(stdout);
    while (argc > 1 && access(argv[1], F_OK) < 0)
        usleep(rnl_extract(ep, SIZE_MAX) < 0 ? 50000 : 10000);
    const int status = rnl_close(ep);
    if (status == 0)
        puts("closed");
    else
        printf("close: %s %s\n", status == RNL_ERR_JOB ? "RNL_ERR_JOB" : "another error", rnl_last_error()->text);
    return code ? atoi(code) : 0;
}
