/* SPDX-License-Identifier: BSD-3-Clause
 *
 * systems.h - every system that sends packets, and a machine for it. */
#ifndef RNL_TESTS_PAPER_SYSTEMS_H
#define RNL_TESTS_PAPER_SYSTEMS_H

static const char *const systems[][2] = {{"simple", "H-PP"},
                                         {"simple-tuned", "H-PP"},
                                         {"fm1", "H-S"},
                                         {"fm1-polls", "H-A"},
                                         {"fm1-tuned", "H-S"},
                                         {"fm1-tuned-polls", "H-A"},
                                         {"fm2", "H-FM2"},
                                         {"fm2-tuned", "H-FM2"},
                                         {"vmmc", "H-P"},
                                         {"bip", "H-PP"},
                                         {"bip-tuned", "H-PP"},
                                         {"pm", "H-P"},
                                         {"pm-tuned", "H-P"},
                                         {"pm-uncached", "H-PP"},
                                         {"pm-tuned-cached", "H-PP"},
                                         {"fmmc", "H-A"},
                                         {"fmmc-small", "H-A"},
                                         {"fmmc-no-multicast", "H-A"},
                                         {"fmmc-tuned", "H-A"},
                                         {"fmmc-tuned-no-multicast", "H-A"},
                                         {"lfc", "H-PP"},
                                         {"lfc-tuned", "H-PP"},
                                         {"am2", "H-PP"},
                                         {"am2-tuned", "H-PP"},
                                         {"vmmc2", "H-PP"},
                                         {"vmmc2-misses", "H-PP"},
                                         {"vmmc2-tuned", "H-PP"},
                                         {"unet-tuned", "H-PP"},
                                         {"unet-mm-tuned", "H-PP"},
                                         {"hamlyn", "H-PP"},
                                         {"trapeze", "H-PP"},
                                         {"trapeze-store", "H-P"},
                                         {"trapeze-tuned", "H-PP"},
                                         {"trapeze-tuned-store", "H-P"}};
enum { SYSTEMS = sizeof systems / sizeof systems[0] };

#endif
