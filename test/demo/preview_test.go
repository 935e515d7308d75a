package main

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"operetta.dev/test/internal/screen"
)

var update = flag.Bool("update", false, "write the golden files")

// onFile returns a demo whose screen is a file, and a function that returns what is in it.
func onFile(t *testing.T) (*demo, func() string) {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "screen"))
	if err != nil {
		t.Fatal(err)
	}
	d := &demo{screen: screen.New(f)}
	t.Cleanup(func() { d.screen.Close(); _ = f.Close() })
	return d, func() string {
		text, err := os.ReadFile(f.Name())
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
}

func steps(t *testing.T) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "steps.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestFramesOfAPreviewSayThatThereIsNoCluster(t *testing.T) {
	t.Parallel()
	d, _ := onFile(t)
	frames, err := d.frames(steps(t))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, f := range frames {
		b.WriteString(strings.Join(f, "\n") + "\n\n")
	}
	golden := filepath.Join("testdata", "preview.golden")
	if *update {
		if err := os.WriteFile(golden, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Errorf("the frames (-want +got); -update writes them:\n%s", diff)
	}
	for _, f := range frames {
		if !strings.HasPrefix(f[0], "Preview, step ") || !strings.Contains(f[0], "there is no cluster yet") {
			t.Errorf("a frame begins with %q, which could be taken for a cluster", f[0])
		}
	}
}

func TestAPreviewThatIsNotUnderstoodIsAnError(t *testing.T) {
	t.Parallel()
	const resource = `"resource": {"apiVersion": "example.com/v1", "kind": "WebApp", "name": "shop"}`
	for what, text := range map[string]string{
		"text":               "step 1  WebApp default/shop  Ready\n",
		"a cut line":         `{"step": 1, ` + resource,
		"a status of a word": `{` + resource + `, "status": "Ready"}`,
	} {
		d, _ := onFile(t)
		if frames, err := d.frames([]byte(text)); err == nil {
			t.Errorf("%s: it is drawn as %q", what, frames)
		}
	}
}

func TestAResourceThatIsGoneIsDrawnAsOneWithoutStatus(t *testing.T) {
	t.Parallel()
	d, _ := onFile(t)
	frames, err := d.frames([]byte(`{"resource": {"kind": "WebApp", "name": "shop"}, "status": null}`))
	if err != nil || len(frames) != 1 || frames[0][1] != "WebApp/shop  no status yet" {
		t.Errorf("it is drawn as %q: %v", frames, err)
	}
	if frames, err := d.frames(nil); err != nil || len(frames) != 0 {
		t.Errorf("no step is drawn as %q: %v", frames, err)
	}
}

func TestWhatIsNoTerminalGetsTheLastFrame(t *testing.T) {
	t.Parallel()
	d, shown := onFile(t)
	frames, err := d.frames(steps(t))
	if err != nil {
		t.Fatal(err)
	}
	d.play(t.Context(), frames, make(chan struct{}))
	d.play(t.Context(), nil, make(chan struct{}))
	if got := shown(); strings.Count(got, "Preview, step ") != 1 || !strings.Contains(got, "Preview, step 3 of 3") || strings.Contains(got, "\x1b") {
		t.Errorf("it shows:\n%s", got)
	}
}

func TestAPreviewThatCannotPlayEndsNothing(t *testing.T) {
	// The binary is looked for in the folder of the repository, and there is none here.
	t.Chdir(t.TempDir())
	d, shown := onFile(t)
	d.packages, d.sample = "./cue/...", "sample.yaml"
	d.preview(t.Context(), make(chan struct{}))
	if got := shown(); !strings.Contains(got, "the preview has failed: operetta: ") || !strings.Contains(got, "no such file") {
		t.Errorf("it says:\n%s", got)
	}
	interrupted, cancel := context.WithCancel(t.Context())
	cancel()
	before := shown()
	d.preview(interrupted, make(chan struct{}))
	if got := strings.TrimPrefix(shown(), before); strings.Contains(got, "failed") || !strings.Contains(got, "preview") {
		t.Errorf("a preview that is interrupted says:\n%s", got)
	}
}
