/* tensors.h: digests per tensor, so that damage has a name: model/verity/tensors.sha256, a signed
 * file of lines "HEX  TENSOR". */
#ifndef SERVER_TENSORS_H
#define SERVER_TENSORS_H
#include "base/buf.h"

/* Writes the list for all tensors of a model directory. */
IG_MUST_USE ig_status tensors_write(const char *model_dir);
/* Appends to the message of a failed verification which tensors of the directory differ from the
 * list ("; damaged: a, b"). Needs a list that is
 * itself intact; says nothing when it cannot tell. */
void tensors_name_damage(const char *model_dir, ig_status failure);
#endif
