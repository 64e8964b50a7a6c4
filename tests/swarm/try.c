/* SPDX-License-Identifier: BSD-3-Clause
 *
 * try.c - see try.h. */
#include "swarm/try.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/must.h"
#include "support/random.h"

enum { SECONDS_MAX = 60 }; /* of processor time: an endless loop */

static struct swarm_result *result;

struct swarm_result *swarm_try_new(void)
{
    result = mmap(NULL, sizeof *result, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    TEST_MUST(result != MAP_FAILED);
    (void)test_pattern(0, 0); /* made once, for all children */
    return result;
}

int swarm_try(const struct swarm_plan *plan, void (*after)(void))
{
    int status;
    memset(result, 0, sizeof *result);
    fflush(stdout);
    pid_t child = fork();
    TEST_MUST(child >= 0);
    if (child == 0) {
        const struct itimerval most = {.it_value.tv_sec = SECONDS_MAX};
        TEST_MUST(setitimer(ITIMER_PROF, &most, NULL) == 0);
        swarm_run(plan, result);
        if (after)
            after();
        _exit(0);
    }
    TEST_MUST(waitpid(child, &status, 0) == child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return 0;
    if (!result->why[0] && WIFSIGNALED(status))
        snprintf(result->why, sizeof result->why, "ended by signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    else if (!result->why[0])
        snprintf(result->why, sizeof result->why, "ended with status %d", WEXITSTATUS(status));
    return 1;
}
