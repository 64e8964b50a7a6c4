/* SPDX-License-Identifier: BSD-3-Clause
 *
 * faulty.c - see faulty.h. */
#include "conform/faulty.h"

#include "transport/fault/fault.h"

int faulty_wrap(struct conform_net *net, unsigned places, const char *faults)
{
    struct rnl_fault f;
    if (faults == NULL)
        return 0;
    int status = rnl_fault_parse(faults, &f);
    for (unsigned i = 0; i < places && status == 0; i++) {
        struct rnl_transport *below = net->t[i];
        status = rnl_fault_transport_new(below, &f, conform_now(below), &net->t[i]);
    }
    return status;
}
