# Ingot. Everything is found by folder; there are no lists of files here.
#
#   make              libraries and the command, in build/
#   make help         every target
#
# Variants build into folders of their own and take the same targets:
#   SAN=address,undefined   SAN=thread   COV=1   CROSS=aarch64   CC=clang

MAKEFLAGS += --no-builtin-rules
.SUFFIXES:
.DELETE_ON_ERROR:
comma := ,

# --- variant ------------------------------------------------------------------------------------
CROSS ?=
SAN ?=
COV ?=
FUZZ ?=
ifeq ($(origin CC),default)
CC := gcc
endif
ifneq ($(CROSS),)
CC := $(CROSS)-linux-gnu-gcc
AR := $(CROSS)-linux-gnu-ar
SYSROOT := build/sysroot-$(CROSS)
SYSLIB := $(SYSROOT)/usr/lib/$(CROSS)-linux-gnu
RUN := qemu-$(CROSS) -L /usr/$(CROSS)-linux-gnu -E LD_LIBRARY_PATH=$(SYSLIB)
CPPFLAGS_VARIANT := -isystem $(SYSROOT)/usr/include -isystem $(SYSROOT)/usr/include/$(CROSS)-linux-gnu
LDFLAGS_VARIANT := -L$(SYSLIB) -Wl,-rpath-link,$(SYSLIB)
endif
VARIANT := $(if $(CROSS),-$(CROSS))$(if $(findstring clang,$(CC)),-clang)$(if $(SAN),-san-$(subst $(comma),-,$(SAN)))$(if $(COV),-cov)$(if $(FUZZ),-fuzz)
B := build$(if $(VARIANT),/v$(VARIANT))
GEN := build/gen
MACHINE := $(firstword $(subst -, ,$(shell $(CC) -dumpmachine)))

# --- flags --------------------------------------------------------------------------------------
# The numeric contract (DESIGN 5) needs -ffp-contract=off in every file; lint reads the commands.
WARN := -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes -Wmissing-prototypes
# gcc's -O2 leaves loops of unknown length scalar; clang's does not.
OPT := -O2 -g $(if $(findstring clang,$(CC)),,-fvect-cost-model=dynamic)
# Instrumented code confuses gcc's flow analysis: there warnings are not errors.
ifneq ($(SAN)$(COV),)
WARN := $(filter-out -Werror,$(WARN)) -Wno-format-truncation
endif
ifneq ($(SAN),)
OPT := -O1 -g -fsanitize=$(SAN) -fno-sanitize-recover=all -fno-omit-frame-pointer -DINGOT_DEBUG
LDFLAGS_VARIANT += -fsanitize=$(SAN)
endif
ifneq ($(COV),)
OPT := -O0 -g --coverage -DINGOT_DEBUG
LDFLAGS_VARIANT += --coverage
endif
ifneq ($(FUZZ),)
OPT += -fsanitize=fuzzer-no-link
endif
ALL_CFLAGS = -std=gnu11 $(OPT) $(WARN) -fPIC -fvisibility=hidden -ffp-contract=off -pthread \
    -Iinclude -Isrc -I$(GEN) $(CPPFLAGS_VARIANT) $(CFLAGS)
LD_FLAGS = -pthread -Wl,--as-needed $(LDFLAGS_VARIANT) $(LDFLAGS)

ISA_avx2 := -mavx2 -mfma -mf16c
ISA_avx512 := $(ISA_avx2) -mavx512f -mavx512bw -mavx512vl -mavx512dq
ISA_vnni := $(ISA_avx512) -mavx512vnni
ISA_amx := $(ISA_vnni) -mamx-tile -mamx-int8 -mamx-bf16
ISA_neon :=
ISA_dotprod := -march=armv8.2-a+dotprod
ISA_i8mm := -march=armv8.2-a+dotprod+i8mm
ifeq ($(MACHINE),x86_64)
VEC_ISAS := avx2 avx512
FOREIGN := arm
else ifeq ($(MACHINE),aarch64)
VEC_ISAS := neon
FOREIGN := x86
else
FOREIGN := x86 arm
endif

# --- sources ------------------------------------------------------------------------------------
find_c = $(if $(wildcard $(1)),$(sort $(shell find $(wildcard $(1)) -name '*.c')))
objs = $(patsubst src/%.c,$(B)/obj/%.o,$(1))

VEC_SRC := $(wildcard src/array/cpu/vec/*.c)
SRC_BASE := $(call find_c,src/base)
SRC_ARRAY := $(filter-out $(VEC_SRC) $(foreach d,$(FOREIGN),src/array/cpu/$(d)/%),$(call find_c,src/array))
SRC_IO := $(call find_c,src/io)
SRC_LM := $(call find_c,src/lm src/audit)
# The sysroot of another architecture has no HTTP library: server and command stay native.
SRC_APP := $(if $(CROSS),,$(filter-out src/cli/main.c,$(call find_c,src/server src/cli)))

OBJ_BASE := $(call objs,$(SRC_BASE))
OBJ_INGOT := $(OBJ_BASE) $(call objs,$(SRC_ARRAY) $(SRC_IO)) \
    $(foreach i,$(VEC_ISAS),$(patsubst src/%.c,$(B)/obj/%.$(i).o,$(VEC_SRC))) \
    $(B)/obj/gen/ops_builders.o
OBJ_LM := $(call objs,$(SRC_LM))
OBJ_APP := $(call objs,$(SRC_APP))
OBJ_SUPPORT := $(patsubst tests/%.c,$(B)/tests/%.o,$(wildcard tests/support/*.c))

TEST_SRC := $(sort $(filter-out $(if $(CROSS),tests/server/% tests/cli/%),$(wildcard tests/*/test_*.c)))
TEST_BIN := $(TEST_SRC:%.c=$(B)/%)
QUICK_BIN := $(foreach t,$(TEST_BIN),$(if $(filter test_slow_%,$(notdir $(t))),,$(t)))
TEST_SH := $(sort $(wildcard tests/*/run_*.sh))
FUZZ_BIN := $(patsubst tests/fuzz/%.c,$(B)/tests/fuzz/%,$(sort $(wildcard tests/fuzz/fuzz_*.c)))
EXAMPLE_BIN := $(patsubst examples/%.c,$(B)/examples/%,$(sort $(wildcard examples/*.c)))
BENCH_BIN := $(patsubst bench/%.c,$(B)/bench/%,$(call find_c,bench))
EMBED := $(patsubst src/%,$(GEN)/%.inc,$(sort $(shell find src -path '*/embed/*' -type f 2>/dev/null)))

# --- libraries ----------------------------------------------------------------------------------
VERSION := $(shell sed -n 's/^\#define IG_VERSION "\(.*\)"/\1/p' include/ingot/ingot.h 2>/dev/null)
SO := $(firstword $(subst ., ,$(VERSION)))
LIBS_INGOT := -lcrypto -ljansson -lm
LIBS_LM := -lpcre2-8 -lutf8proc $(LIBS_INGOT)
LIBS_APP := $(if $(CROSS),,-lmicrohttpd) $(LIBS_LM)
ARCHIVES := $(B)/libapp.a $(B)/libingot-lm.a $(B)/libingot.a

LIBRARIES := $(B)/libingot.a $(B)/libingot.so $(if $(SRC_LM),$(B)/libingot-lm.a $(B)/libingot-lm.so)
PROGRAM := $(if $(CROSS),,$(if $(wildcard src/cli/main.c),$(B)/ingot))

.PHONY: all libs test quick sanitized threaded portable fuzz-targets lint format fuzz faults coverage \
    bench quality \
    demo examples tests install uninstall clean help setup setup-tests generate
all: $(LIBRARIES) $(PROGRAM) $(addsuffix .1,$(PROGRAM))
$(if $(CROSS),$(shell ./setup.sh --sysroot $(CROSS) >&2))
libs: $(LIBRARIES)
tests: $(TEST_BIN)
examples: $(EXAMPLE_BIN)

Q := $(if $(V),,@)
say = $(if $(V)$(findstring s,$(firstword -$(MAKEFLAGS))),,@printf '%-5s %s\n' '$(1)' '$(2)')

# Objects are rebuilt when the flags change, archives when a source comes or goes.
STAMP := $(B)/flags
$(shell mkdir -p $(B); printf '%s' '$(CC) $(ALL_CFLAGS)' | cmp -s - $(STAMP) || \
    printf '%s' '$(CC) $(ALL_CFLAGS)' > $(STAMP))

LIST := $(B)/objects
$(shell printf '%s' '$(OBJ_INGOT) $(OBJ_LM) $(OBJ_APP) $(OBJ_SUPPORT)' | cmp -s - $(LIST) || \
    printf '%s' '$(OBJ_INGOT) $(OBJ_LM) $(OBJ_APP) $(OBJ_SUPPORT)' > $(LIST))

# $(call compile,extra flags): the command is kept beside the object for lint.
define compile
$(call say,CC,$<$(if $(2), ($(2))))
@mkdir -p $(@D)
@printf '%s\n' '$(CC) $(ALL_CFLAGS) $(1) -c $<' > $@.cmd
$(Q)$(CC) $(ALL_CFLAGS) $(1) -MMD -MP -c $< -o $@
endef

GENERATED := $(GEN)/ops.stamp $(EMBED)
$(OBJ_INGOT) $(OBJ_LM) $(OBJ_APP): $(STAMP) | $(GENERATED)

# A body that only one instruction set can have says which in its name: qmm_vnni.c.
suffix_isa = $(lastword $(subst _, ,$(basename $(notdir $(1)))))
$(B)/obj/array/cpu/x86/%.o: src/array/cpu/x86/%.c
	$(call compile,$(ISA_$(call suffix_isa,$<)))
$(B)/obj/array/cpu/arm/%.o: src/array/cpu/arm/%.c
	$(call compile,$(ISA_$(call suffix_isa,$<)))
$(B)/obj/gen/%.o: $(GEN)/%.c
	$(call compile)
$(B)/obj/%.o: src/%.c
	$(call compile)

# One body, one object per instruction set.
define vec_rule
$(B)/obj/array/cpu/vec/%.$(1).o: src/array/cpu/vec/%.c
	$$(call compile,-DISA=$(1) $(ISA_$(1)),$(1))
endef
$(foreach i,$(VEC_ISAS),$(eval $(call vec_rule,$(i))))

$(GEN)/ops_builders.c: $(GEN)/ops.stamp ;
$(B)/libingot.a: $(OBJ_INGOT)
$(B)/libingot-lm.a: $(OBJ_LM)
$(B)/libapp.a: $(OBJ_APP)
$(B)/libsupport.a: $(OBJ_SUPPORT)
$(B)/%.a: $(LIST)
	$(call say,AR,$@)
	@mkdir -p $(@D)
	$(Q)rm -f $@; $(AR) rcs $@ $(filter %.o,$^)

# -z defs: what a library uses and does not link is an error here, not at somebody's start. For
# libingot-lm it proves that only exported symbols of libingot are used; it has its own copy of
# base/, except the error records, which are libingot's.
$(B)/libingot.so: $(OBJ_INGOT)
	$(call say,LD,$@)
	$(Q)$(CC) -shared -Wl,-soname,libingot.so.$(SO) $(if $(SAN),,-Wl$(comma)-z$(comma)defs) $(LD_FLAGS) $^ $(LIBS_INGOT) -o $@
	$(Q)ln -sf libingot.so $@.$(SO)
$(B)/libingot-lm.so: $(OBJ_LM) $(filter-out %/status.o,$(OBJ_BASE)) | $(B)/libingot.so
	$(call say,LD,$@)
	$(Q)$(CC) -shared -Wl,-soname,libingot-lm.so.$(SO) $(if $(SAN),,-Wl$(comma)-z$(comma)defs) $(LD_FLAGS) $^ -L$(B) -lingot $(LIBS_LM) -o $@
	$(Q)ln -sf libingot-lm.so $@.$(SO)

$(B)/ingot: $(B)/obj/cli/main.o $(ARCHIVES)
	$(call say,LD,$@)
	$(Q)$(CC) $(LD_FLAGS) $^ $(LIBS_APP) -o $@
$(B)/ingot.1: docs/ingot.1.in tools/man.sh $(B)/ingot
	$(Q)tools/man.sh $(B)/ingot $(VERSION) > $@
$(B)/obj/cli/main.o: $(STAMP) | $(GENERATED)

# --- generated ----------------------------------------------------------------------------------
# Public generated files are committed, so that a review sees a change of the API.
HOSTCC := gcc
$(GEN)/tools/%: tools/%.c
	$(call say,TOOL,$@)
	@mkdir -p $(@D)
	$(Q)$(HOSTCC) -std=gnu11 -O1 -g $(WARN) -ffp-contract=off -Iinclude -Isrc -MMD -MP $< -o $@
$(GEN)/ops.stamp: $(GEN)/tools/opgen
	$(Q)$< include/ingot/ops.h docs/ops.md $(GEN)/ops_builders.c
	@touch $@
$(GEN)/%.inc: src/% $(GEN)/tools/bin2c
	@mkdir -p $(@D)
	$(Q)$(GEN)/tools/bin2c $< $@
generate: $(GENERATED)

# --- tests --------------------------------------------------------------------------------------
TEST_CFLAGS = -Itests -Wno-missing-prototypes
$(B)/tests/%.o: tests/%.c $(STAMP) | $(GENERATED)
	$(call compile,$(TEST_CFLAGS))
$(TEST_BIN): $(B)/tests/%: $(B)/tests/%.o $(B)/libsupport.a $(ARCHIVES)
	$(call say,LD,$@)
	$(Q)$(CC) $(LD_FLAGS) $^ $(LIBS_APP) -lcmocka -o $@
# With gcc a fuzz target replays its corpus and mutations of it; with FUZZ=1 libFuzzer drives it.
FUZZ_MAIN := $(B)/tests/fuzz/main.o
$(FUZZ_BIN): $(B)/tests/fuzz/%: $(B)/tests/fuzz/%.o $(if $(FUZZ),,$(FUZZ_MAIN)) $(B)/libsupport.a $(ARCHIVES)
	$(call say,LD,$@)
	$(Q)$(CC) $(LD_FLAGS) $(if $(FUZZ),-fsanitize=fuzzer) $^ $(LIBS_APP) -o $@
$(B)/examples/%.o: examples/%.c $(STAMP) | $(GENERATED)
	$(call compile)
$(EXAMPLE_BIN): %: %.o $(B)/libingot-lm.a $(B)/libingot.a
	$(call say,LD,$@)
	$(Q)$(CC) $(LD_FLAGS) $^ $(LIBS_LM) -o $@

$(B)/bench/%.o: bench/%.c $(STAMP) | $(GENERATED)
	$(call compile)
$(BENCH_BIN): %: %.o $(ARCHIVES)
	$(call say,LD,$@)
	$(Q)$(CC) $(LD_FLAGS) $^ $(LIBS_APP) -o $@

SUBMAKE = +@$(MAKE) --no-print-directory $(if $(findstring -j,$(MAKEFLAGS)),,-j$(shell nproc))
setup:
	@./setup.sh
setup-tests:
	@./setup.sh --tests
run_tests = B=$(B) RUN='$(RUN)' CC='$(CC)' tests/run.sh
test: setup-tests
	$(SUBMAKE) all tests examples $(FUZZ_BIN) $(BENCH_BIN)
	@$(run_tests) $(TEST_BIN) $(FUZZ_BIN) $(if $(VARIANT),,$(TEST_SH))
quick: $(QUICK_BIN)
	@$(run_tests) $(QUICK_BIN)
sanitized: $(QUICK_BIN) $(FUZZ_BIN)
	@$(run_tests) $(QUICK_BIN) $(FUZZ_BIN)
THREADED := $(patsubst %.c,$(B)/%,$(shell grep -lE 'pthread_create|thread_start|pool_run' $(TEST_SRC)))
threaded: $(filter $(QUICK_BIN),$(THREADED))
	@$(run_tests) $^
PORTABLE := $(addprefix $(B)/tests/,cpu/test_slots cpu/test_contract lm/test_bits)
portable: $(PORTABLE)
	@$(run_tests) $^
fuzz-targets: $(FUZZ_BIN)
fuzz:
	@tests/fuzz/run.sh
# make test strikes each call in one way, in turn.
faults: $(B)/tests/server/test_slow_faults
	@$< every
coverage:
	$(SUBMAKE) COV=1 quick
	@tests/coverage.sh build/v-cov

# --- checks -------------------------------------------------------------------------------------
FORMATTED = $(filter-out include/ingot/ops.h tests/golden/%,$(shell git ls-files -co --exclude-standard '*.c' '*.h'))
lint: $(GEN)/tools/layers $(GEN)/tools/lint all tests
	@git diff --exit-code --stat -- include/ingot/ops.h docs/ops.md || \
	    { echo 'lint: generated files differ from what is committed: commit them'; exit 1; }
	$(Q)$(GEN)/tools/layers LAYERS
	$(Q)$(GEN)/tools/lint $(B)
	$(Q)clang-format --dry-run -Werror $(FORMATTED)
	$(Q)tools/static.sh
format:
	clang-format -i $(FORMATTED)

# --- work ---------------------------------------------------------------------------------------
bench: all $(BENCH_BIN)
	@bench/bench.sh
quality: all
	@bench/quality.sh
demo: setup
	$(SUBMAKE) all
	@examples/demo.sh

# --- install ------------------------------------------------------------------------------------
PREFIX ?= /usr/local
DESTDIR ?=
LIBDIR ?= $(PREFIX)/lib
install: all
	@B=$(B) VERSION=$(VERSION) PREFIX='$(PREFIX)' LIBDIR='$(LIBDIR)' DESTDIR='$(DESTDIR)' tools/install.sh install
uninstall:
	@B=$(B) VERSION=$(VERSION) PREFIX='$(PREFIX)' LIBDIR='$(LIBDIR)' DESTDIR='$(DESTDIR)' tools/install.sh uninstall
clean:
	rm -rf build
define HELP
make             libraries and the command, in build/
make test        everything that has to hold; ends with "N passed, N failed"
make quick       the unit tests only
make demo        a real model through all nine stages, in demo/
make lint        format, layers, our own rules, static analysis
make format      lets clang-format write
make fuzz        libFuzzer on every parser, FUZZ_SECONDS each (20)
make faults      every I/O call of a server's log, failing in six ways each (some minutes)
make coverage    lines reached by the unit tests
make bench       speed against llama.cpp, both built here
make quality     perplexity and divergence of the default arithmetic
make install     PREFIX=/usr/local DESTDIR= LIBDIR=PREFIX/lib
make uninstall   the same variables
make clean       removes build/
variants         SAN=address,undefined  SAN=thread  COV=1  CROSS=aarch64  CC=clang  V=1
endef
export HELP
help:
	@printf '%s\n' "$$HELP"

-include $(shell find $(B)/obj $(B)/tests $(B)/examples $(B)/bench $(GEN)/tools -name '*.d' 2>/dev/null)
