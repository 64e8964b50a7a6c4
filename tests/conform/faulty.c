/* SPDX-License-Identifier: BSD-3-Clause
 *
 * faulty.c - see faulty.h. */
#include "conform/faulty.h"

#include "transport/fault/fault.h"

int faulty_wrap(struct conform_net *net, unsigned places, const char *faults)
{
    struct rnl_fault f;
    int status = 0;
    if (faults == NULL)
        return 0;
    for (unsigned i = 0; i < places && status == 0; i++) {
        struct rnl_transport *below = net->t[i];
        if (faults[0]) {
            status = rnl_fault_wrap(&net->t[i], faults, conform_now(below));
        } else { /* wrapped in faults that never strike */
            status = rnl_fault_parse("", &f);
            if (status == 0)
                status = rnl_fault_transport_new(below, &f, conform_now(below), &net->t[i]);
        }
    }
    return status;
}
