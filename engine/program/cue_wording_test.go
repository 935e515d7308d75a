package program_test

import (
	"encoding/json"
	"errors"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"operetta.dev/engine/fault"
	"operetta.dev/engine/program"
	"operetta.dev/engine/source"
	"operetta.dev/test/inline"
	"operetta.dev/test/machine"
	"operetta.dev/test/reword"
)

// A new version of CUE may put every error differently. A person then reads something else,
// and nothing else changes: what is rendered, what waits and for whom, what is wrong and
// what is only incomplete.
func TestNothingIsDecidedByWhatCUESays(t *testing.T) {
	machine.Serial(t)
	for _, pattern := range []string{"testdata/eval/*.txtar", "testdata/load/*.txtar"} {
		paths, err := filepath.Glob(pattern)
		if err != nil || len(paths) == 0 {
			t.Fatalf("no golden files at %s (%v)", pattern, err)
		}
		for _, path := range paths {
			t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
				archive, err := txtar.ParseFile(path)
				if err != nil {
					t.Fatal(err)
				}
				said := decided(t, archive)
				reword.CUE(t)
				if diff := cmp.Diff(said, decided(t, archive)); diff != "" {
					t.Errorf("in other words it is something else (-as CUE says it +reworded):\n%s", diff)
				}
			})
		}
	}
}

// decided returns what the engine makes of a golden file, without what is said about it.
func decided(t *testing.T, archive *txtar.Archive) any {
	t.Helper()
	module, file := fstest.MapFS{}, map[string][]byte{}
	for _, f := range archive.Files {
		file[f.Name] = f.Data
		if name, ok := strings.CutPrefix(f.Name, "module/"); ok {
			module[name] = &fstest.MapFile{Data: f.Data}
		}
	}
	dir := strings.TrimSpace(string(file["dir"]))
	s, err := source.Loader{}.Module(path.Base(dir), "", dir, module)
	if err != nil {
		return "no snapshot"
	}
	p, err := program.Load(s)
	if err != nil {
		return unsaid(t, map[string]any{"wrong": err})
	}
	var session program.Session
	inline.Decode(t, file["cr.yaml"], &session.CR)
	inline.Decode(t, file["live.yaml"], &session.Live)
	inline.Decode(t, file["inputs.yaml"], &session.Inputs)
	inline.Decode(t, file["config.yaml"], &session.Config)
	r, err := p.Evaluate(session)
	if faults, ok := errors.AsType[fault.Faults](err); ok {
		return unsaid(t, map[string]any{"faults": faults})
	}
	return unsaid(t, map[string]any{"rollout": r, "failed": err != nil})
}

// unsaid returns a value as data without the words in it.
func unsaid(t *testing.T, v any) any {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var data any
	if err := json.Unmarshal(text, &data); err != nil {
		t.Fatal(err)
	}
	return withoutWords(data)
}

func withoutWords(data any) any {
	switch v := data.(type) {
	case []any:
		var out []any
		for _, e := range v {
			if e = withoutWords(e); !slices.ContainsFunc(out, func(o any) bool { return cmp.Equal(o, e) }) {
				out = append(out, e) // disjunctions have faults that are noise
			}
		}
		return out
	case map[string]any:
		if code, isFault := v["Code"]; isFault {
			return map[string]any{"Code": code, "Path": v["Path"]}
		}
		for key, inner := range v {
			switch key {
			case "Detail":
				v[key] = inner != ""
			case "Missing":
				list, several := inner.([]any)
				v[key] = several && len(list) > 0 || inner != "" && !several && inner != nil
			default:
				v[key] = withoutWords(inner)
			}
		}
	}
	return data
}
