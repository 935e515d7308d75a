package main

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"operetta.dev/engine/fault"
	"operetta.dev/engine/source"
	"operetta.dev/test/machine"
)

// FuzzDocuments feeds the files that are given with -f.
func FuzzDocuments(f *testing.F) {
	f.Add("apiVersion: v1\nkind: ConfigMap\n---\n{a: b}\n--- \nkind: List\nitems: [{kind: X}, 5]\n")
	f.Add("{\"a\": 1}\n{\"b\": [1e400]} {\"kind\":\"FooList\",\"items\":[{\"kind\":\"XList\",\"items\":[{}]}]}")
	f.Add("\ufeff---\n\t---x\na: &a {b: *a}\n...\n%YAML 1.2\n--- |\n x\n")
	f.Add("a: !!binary x\n? {}\n: - \x00\n<<: 5")
	f.Fuzz(func(t *testing.T, text string) {
		const enough = 8 << 10
		if len(text) > enough {
			t.Skip("it is longer than what is asked here")
		}
		got, err := parseDocuments(text)
		for _, d := range got {
			if line := d.lineOf("metadata", "name"); line < 1 || d.position().File != stdinName {
				t.Errorf("%q is at line %d of %s", d.text, line, d.position().File)
			}
			if _, err := yamlOf(d.object); err != nil {
				t.Errorf("what was read is not printed: %v", err)
			}
			_ = d.describe() + d.name()
		}
		for _, f := range faultsOf(err) {
			if strings.ContainsFunc(escapeControls(f.Error()), actsOnTerminal) {
				t.Errorf("the fault is %q", f.Error())
			}
		}
	})
}

// FuzzVisible feeds what is printed.
func FuzzVisible(f *testing.F) {
	f.Add("plain", controlText)
	f.Add("\x1b[32m", "\xff\xfe\x9b")
	f.Fuzz(func(t *testing.T, a, b string) {
		shown := escapeControls(a + markTrusted("\x1b[32m") + b)
		if strings.ContainsFunc(strings.ReplaceAll(shown, "\x1b[32m", ""), actsOnTerminal) {
			t.Errorf("%q and %q are shown as %q", a, b, shown)
		}
		if strings.Count(shown, "\x1b") != 1 {
			t.Errorf("%q has other escapes than the one that is meant", shown)
		}
	})
}

// FuzzFinding feeds what a worker answers: a package may have got hold of it.
func FuzzFinding(f *testing.F) {
	f.Add(`{"digest":"sha256:x","faults":[{"path":"a","message":"b","position":{"file":"x.cue","line":3}}],"edges":["a"],"crd":{"metadata":{"name":"x"},"spec":{"versions":[{"name":"v1","schema":{"openAPIV3Schema":{}}}]}}}`)
	f.Add(`{"faults":{"a":1}}`)
	f.Add(`null`)
	f.Fuzz(func(t *testing.T, text string) {
		var got finding
		if json.Unmarshal([]byte(text), &got) != nil {
			return
		}
		var again finding
		encoded, err := json.Marshal(got)
		if err == nil {
			err = json.Unmarshal(encoded, &again)
		}
		if err != nil || len(again.Faults) != len(got.Faults) {
			t.Errorf("%q is not what it was: %v", encoded, err)
		}
		for _, f := range got.Faults {
			_ = fault.Faults{f}.Error() + f.Error()
		}
		_ = locationOf(got.Faults)
	})
}

// locationOf is faultLocation of faults, if there are any.
func locationOf(faults fault.Faults) string {
	if len(faults) == 0 {
		return ""
	}
	return faultLocation(faults)
}

// FuzzPackage feeds the files of a package to a worker, as the operator does: whatever they say,
// there is an answer or a reason, in time.
func FuzzPackage(f *testing.F) {
	f.Add("package shop\n")
	f.Add(terminatingPackage)
	f.Add(strings.Replace(terminatingPackage, `"y"`, `"\(len("y"*100000000))"`, 1))
	f.Add("package shop\n\nx: x: x\n#A: {a: #A}\ny: #A\n" + strings.Repeat("a:", 2000) + "1")
	e := newTestExaminer("operetta")
	const limit = 5 * time.Second
	e.timeout = limit
	f.Fuzz(func(t *testing.T, text string) {
		snapshot, err := source.Loader{}.Module("shop", "", "shop", fstest.MapFS{"shop/shop.cue": {Data: []byte(text)}})
		if err != nil {
			return
		}
		began := time.Now()
		found, err := e.examine(t.Context(), snapshot, examineAll)
		if took := time.Since(began); took > machine.Limit(2*limit) {
			t.Errorf("it takes %s", took)
		}
		if err != nil || len(found.Faults) > 0 {
			return
		}
		if diff := cmp.Diff(snapshot.Digest(), found.Digest); diff != "" || found.CRD == nil {
			t.Errorf("a package without faults has a definition (-want +got):\n%s", diff)
		}
		if _, err := compile(snapshot); err != nil {
			t.Errorf("what was examined does not compile: %v", err)
		}
	})
}
