/* demomodel.h: the real model for tests: SmolLM2-135M-Instruct, fetched by setup.sh and packed by
 * the command that was just built, once, into build/tests. */
#ifndef SUPPORT_DEMOMODEL_H
#define SUPPORT_DEMOMODEL_H

/* The model folder of the bundle. A failure fails the test; NULL where programs run under an
 * emulator, which is too slow for it. */
const char *demomodel(void);
#endif
