package worker_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"operetta.dev/engine/program"
	"operetta.dev/test/inline"
	"operetta.dev/test/machine"
)

// versioned is a package with two versions, one of whose conversions never ends for some specs.
const versioned = `package shop

import (
	"text/template"
	"operetta.dev/schemas/operator"
)

operator.#Controller

group: "shop.example"
kind:  "Shop"
cr: spec: #Spec
#Spec: {n: int & <=100 | *2, text?: string}
#Old: {number: int | *2, text?: string}
versions: {
	v1: {spec: #Spec, storage: true}
	v1beta1: {spec: #Old, convert: v1: {
		to: {given: #Old, spec: {n: given.number, if given.text != _|_ {text: template.Execute(given.text, {})}}}
		from: {given: #Spec, spec: {number: given.n, if given.text != _|_ {text: given.text}}}
	}}
}
`

func TestWorkersConvertAsTheProgramDoes(t *testing.T) {
	t.Parallel()
	p := inline.Program(t, versioned)
	in := newPool(t, 2).Package(p)
	for _, spec := range []any{nil, map[string]any{}, map[string]any{"number": int64(3)}, map[string]any{"number": 3.0}, map[string]any{"number": "text"}, map[string]any{"number": int64(600)}, "text", map[string]any{"text": strings.Repeat("a", 1<<20)}} {
		want, wantErr := p.Conversions().ConvertResource(program.Conversion{From: "v1beta1", To: "v1", Spec: spec})
		got, err := in.Convert(t.Context(), program.Conversion{Namespace: "town", Name: "corner", From: "v1beta1", To: "v1", Spec: spec})
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%.40v (-want +got):\n%s", spec, diff)
		}
		if (wantErr == nil) != (err == nil) || err != nil && err.Error() != wantErr.Error() {
			t.Errorf("%.40v: got %v, want %v", spec, err, wantErr)
		}
	}
}

func TestAConversionThatHangsHarmsNoOther(t *testing.T) {
	t.Parallel()
	pool := newPool(t, 2)
	in := pool.Package(inline.Program(t, versioned))
	ctx, cancel := context.WithTimeout(t.Context(), machine.Patience)
	defer cancel()
	hanging := make(chan error, 1)
	go func() {
		_, err := in.Convert(ctx, program.Conversion{Namespace: "mallory", Name: "hangs", From: "v1beta1", To: "v1", Spec: map[string]any{"text": endless}})
		hanging <- err
	}()
	got, err := in.Convert(ctx, program.Conversion{Namespace: "town", Name: "fine", From: "v1beta1", To: "v1", Spec: map[string]any{"number": int64(3), "text": "{{1}}"}})
	if diff := cmp.Diff(map[string]any{"n": int64(3), "text": "1"}, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if limit, over := errors.AsType[*program.LimitError](<-hanging); !over || !limit.TooSlow || ctx.Err() != nil {
		t.Errorf("it was not ended by its limit, and the context is %v", ctx.Err())
	}
	if pool.Suspects("mallory") {
		t.Error("whoever may read a resource has made those of the namespace suspect")
	}
}
