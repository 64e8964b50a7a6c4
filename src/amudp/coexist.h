/* SPDX-License-Identifier: BSD-3-Clause
 *
 * coexist.h - the second names that AMUDP_COEXIST_WITH_AM gives to functions, for programs that also use another AM. */
#ifndef RNL_AMUDP_COEXIST_H
#define RNL_AMUDP_COEXIST_H

#define AMUDP_ALSO(name, second) extern AMUDP_PUBLIC __typeof__(name) second __attribute__((alias(#name)))

#endif
