/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fit.c - `runnel paper fit`: finds the fitted values again. Fails when the machines have others. */
#include "sim/myrinet/command/command.h"
#include "sim/myrinet/experiments/rows.h"

#include <math.h>
#include <stdio.h>

int myri_cmd_fit(struct myri_cmd_options *o)
{
    if (o->bounds)
        return myri_cmd_bounds(o);
    struct myri_fit f[MYRI_FITS];
    myri_cmd_progress("each fitted value is tried over its range, on its rows: a few seconds");
    int n = myri_fit_all(f, MYRI_FITS), differ = 0;
    myri_cmd_progress(NULL);
    if (n < 0)
        return myri_cmd_failed();
    if (o->json)
        putchar('[');
    for (int i = 0; i < n; i++) {
        int same = fabs(f[i].found - f[i].is) < f[i].step / 2;
        differ |= !same;
        if (o->json)
            printf("%s\n  {\"value\": \"%s\", \"machines\": \"%s\", \"rows\": \"%s\", \"found\": %.6g, \"is\": %.6g}",
                   i ? "," : "", myri_machine_name_of(f[i].value), f[i].machines, f[i].rows, f[i].found, f[i].is);
        else
            printf("%-14s %-9s rows %-7s from %g to %g: %g %s (off by %.1f %% in the mean); the machines have %g%s\n",
                   myri_machine_name_of(f[i].value), f[i].machines, f[i].rows, f[i].least, f[i].most, f[i].found,
                   myri_machine_unit_of(f[i].value), 100 * sqrt(f[i].misfit), f[i].is, same ? "" : ": NOT THE SAME");
    }
    if (o->json)
        puts("\n]");
    return differ;
}
