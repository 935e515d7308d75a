package program_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"operetta.dev/engine/program"
)

// The live objects that most rows of verdicts see.
const (
	absent = `{}`
	exists = `{web: {d: {metadata: {name: x}}}}`
	status = `{web: {d: {metadata: {name: x}, status: {num: 3, s: "3", phase: Running, none: null, conditions: [], labels: {}}}}}`
)

type verdictCase struct {
	reason    string
	live      string
	more      string // of the package
	predicate string
	want      program.Verdict
	detail    string
}

// verdicts holds every trap that was measured in CUE. What it pins down is partly
// CUE's behaviour: a row that fails after an update of CUE is a change that
// authors would notice.
var verdicts = map[string]verdictCase{
	"a comparison that holds is true": {
		reason: "the plain case", live: status, predicate: `live.web.d.status.num >= 3`,
		want: program.True,
	},
	"a comparison that does not hold is false and says the actual and the wanted value": {
		reason: "a person sees how far it is", live: status, predicate: `live.web.d.status.num >= cr.spec.size+2`,
		want: program.False, detail: "is 3, wanted >= 4",
	},
	"an object that does not exist is unknown": {
		reason: "nothing is wrong before the first apply", live: absent, predicate: `live.web.d.status.num == 3`,
		want: program.Unknown, detail: "live.web is not there yet",
	},
	"another component's object is unknown although some exist": {
		reason: "a closed struct around live would make it broken", live: `{db: {sts: {metadata: {name: x}}}}`,
		predicate: `live.web.d.status.num == 3 && live.db.sts.metadata.name == "x"`,
		want:      program.Unknown, detail: "live.web is not there yet",
	},
	"a status that is not there yet is unknown": {
		reason: "controllers write status later", live: exists, predicate: `live.web.d.status.num == 3`,
		want: program.Unknown, detail: "live.web.d.status is not there yet",
	},
	"an optional field that is not there yet is unknown": {
		reason: "authors may type live objects", live: exists, more: `live: web: d: status?: num?: int`,
		predicate: `live.web.d.status.num == 3`,
		want:      program.Unknown, detail: "live.web.d.status is not there yet",
	},
	"a required field that is not there yet is unknown": {
		reason: "a required mark on live is no error of the package", live: `{web: {d: {status: {}}}}`, more: `live: web: d: status: num!: int`,
		predicate: `live.web.d.status.num == 3`,
		want:      program.Unknown, detail: "live.web.d.status.num is not there yet",
	},
	"a type in place of a value is unknown": {
		reason: "int is not a number yet", live: exists, more: `live: web: d: status: num: int`,
		predicate: `live.web.d.status.num == 3`,
		want:      program.Unknown, detail: "non-concrete value int in operand to ==",
	},
	"an interpolation of what is not there yet is unknown": {
		reason: "text waits as numbers do", live: exists, predicate: `"\(live.web.d.status.num)" == "3"`,
		want: program.Unknown, detail: "live.web.d.status is not there yet",
	},
	"ordering values of different types is broken": {
		reason: "it can never be decided", live: status, predicate: `live.web.d.status.num >= "3"`,
		want: program.Broken, detail: `invalid operands 3 and "3" to '>=' (type int and string)`,
	},
	"equality of values of different types is false": {
		reason: "CUE compares any two types; check warns where it can", live: status, predicate: `live.web.d.status.s == 3`,
		want: program.False, detail: `is "3", wanted == 3`,
	},
	"a misspelled field of an open type is unknown": {
		reason: "nothing tells it from one that comes later; a timeout has to", live: status, predicate: `live.web.d.status.m == 3`,
		want: program.Unknown, detail: "live.web.d.status.m is not there yet",
	},
	"a field that a closed type does not know does no harm": {
		reason: "API servers add fields: only what the package refers to enters CUE", live: status, more: "#S: {num: int}\nlive: web: d: status: #S",
		predicate: `live.web.d.status.num == 3`,
		want:      program.True,
	},
	"an index into an empty list is broken": {
		reason: "conditions are to be filtered, not indexed", live: status, predicate: `live.web.d.status.conditions[0].type == "Ready"`,
		want: program.Broken, detail: "index out of range [0] with length 0",
	},
	"an index into a list that is not there yet is unknown": {
		reason: "the list may come", live: exists, predicate: `live.web.d.status.conditions[0].type == "Ready"`,
		want: program.Unknown, detail: "live.web.d.status is not there yet",
	},
	"conditions that are filtered are false while the list is empty": {
		reason: "the way to write it", live: status, predicate: `len([for c in live.web.d.status.conditions if c.type == "Ready" {c}]) > 0`,
		want: program.False, detail: "is 0, wanted > 0",
	},
	"a disjunction of nothing is unknown": {
		reason: "CUE takes it for incomplete", live: status, predicate: `or([for c in live.web.d.status.conditions {true}])`,
		want: program.Unknown, detail: "error in call to or: empty list in call to or",
	},
	"a division by zero is broken": {
		reason: "no later object changes it", live: status, more: "_rest: live.web.d.status.num - 3", predicate: `1/_rest > 1`,
		want: program.Broken, detail: "failed arithmetic: division by zero",
	},
	"both sides of a conjunction are evaluated": {
		reason: "a guard on the left does not help", live: exists, predicate: `live.web.d.status.num != _|_ && live.web.d.status.num == 3`,
		want: program.Unknown, detail: "live.web.d.status is not there yet",
	},
	"a default stands in for what is not there yet": {
		reason: "the way to write a count that may be missing", live: exists, predicate: `(*live.web.d.status.num | 0) >= 3`,
		want: program.False, detail: "is 0, wanted >= 3",
	},
	"a default around a whole predicate hides that it is broken": {
		reason: "why defaults belong on a leaf", live: status, predicate: `*(live.web.d.status.s > 3) | false`,
		want: program.False,
	},
	"a guard decides a field with a default": {
		reason: "authors write it so", live: exists, more: "_ready: {ok: bool | *false, if (*live.web.d.status.phase | \"\") == \"Running\" {ok: true}}",
		predicate: `_ready.ok`,
		want:      program.False,
	},
	"a guard on what is not there yet is unknown": {
		reason: "an undecided guard is no false one", live: exists, more: "_ready: {ok: bool | *false, if live.web.d.status.phase == \"Running\" {ok: true}}",
		predicate: `_ready.ok`,
		want:      program.Unknown, detail: "live.web.d.status is not there yet",
	},
	"error under a guard is broken with the author's words": {
		reason: "authors state what cannot be", live: status, more: `_check: {if live.web.d.status.num == 3 {error("three is no number of servers")}}`,
		predicate: `_check.ok`,
		want:      program.Broken, detail: "three is no number of servers",
	},
	"a value that is no bool is broken": {
		reason: "the contract asks for a bool", live: status, predicate: `live.web.d.status.num`,
		want: program.Broken, detail: "invalid value 3 (must be bool)",
	},
	"a predicate with a hyphen in its path is read by index": {
		reason: "index notation is a selection as well", live: `{web: {"d-x": {status: {num: 3}}}}`, predicate: `live["web"]["d-x"].status.num == 3`,
		want: program.True,
	},
	"null in a live object reads as not there": {
		reason: "API servers and clients disagree about null", live: status, predicate: `live.web.d.status.none == 3`,
		want: program.Unknown, detail: "non-concrete value _ in operand to ==",
	},
}

func TestAPredicateHasFourVerdicts(t *testing.T) {
	t.Parallel()
	for name, c := range verdicts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := compile(t, c.more+"\ncomponents: web: verify: it: "+c.predicate+"\n")
			web := evaluate(t, p, session(t, `{}`, c.live)).Components[0]
			got := web.Verify[0]
			want := program.Predicate{Name: "it", Verdict: c.want, Detail: c.detail, Absent: got.Absent}
			if absent, awaits := strings.CutSuffix(c.detail, " is not there yet"); awaits && got.Absent.String() != absent {
				t.Errorf("%s: %v is absent, want %s", c.reason, got.Absent, absent)
			}
			if c.want != program.True {
				want.Source, want.Position = got.Source, got.Position
				if got.Source != c.predicate {
					t.Errorf("%s: source %q", c.reason, got.Source)
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
		})
	}
}
