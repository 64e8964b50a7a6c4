/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fuzz_machine.c - any bytes as a file of a machine: read with each value inside its bounds, or refused with a
 * sentence; and as an assignment to a machine that was read. */
#include <stdlib.h>
#include <string.h>

#include "input.h"
#include "runnel/runnel.h"
#include "sim/myrinet/hw/machine.h"

#define FUZZ_BOUND(name, unit, least, most) {least, most},
static const struct {
    double least, most;
} bound[MYRI_M_COUNT] = {MYRI_MACHINE_VALUES(FUZZ_BOUND)};

static void look_at(const struct myri_machine *m)
{
    for (unsigned k = 0; k < MYRI_M_COUNT; k++) {
        FUZZ_MUST(m->v[k] >= bound[k].least && m->v[k] <= bound[k].most);
        FUZZ_MUST(memchr(m->source[k], 0, MYRI_MACHINE_TEXT) && myri_machine_class_name(m->class_of[k]));
    }
    FUZZ_MUST(memchr(m->name, 0, MYRI_MACHINE_NAME) && memchr(m->about, 0, MYRI_MACHINE_TEXT));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct myri_machine m;
    char line[200];
    int status = myri_machine_parse((const char *)data, size, &m);
    FUZZ_MUST(status == 0 || (status == RNL_ERR_ARG && *rnl_last_error()->text));
    if (status < 0)
        return 0;
    look_at(&m);
    size_t n = size < sizeof line ? size : sizeof line - 1; /* its end: what a fuzzer appends */
    memcpy(line, data + size - n, n);
    line[n] = 0;
    status = myri_machine_set(&m, line);
    FUZZ_MUST(status == 0 || status == RNL_ERR_ARG);
    look_at(&m);
    return 0;
}
