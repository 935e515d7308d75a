package image

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// root is the folder of the repository.
const root = "../.."

// An instruction is one of a Dockerfile, with its lines joined.
type instruction struct{ name, args string }

// A dockerfile is its instructions by stage; each begins with FROM.
type dockerfile [][]instruction

func parseDockerfile(t *testing.T) dockerfile {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, "Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	var out dockerfile
	text := strings.ReplaceAll(string(content), "\\\n", " ")
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, args, _ := strings.Cut(line, " ")
		if name == "FROM" {
			out = append(out, nil)
		}
		if len(out) == 0 {
			t.Fatalf("the Dockerfile begins with %s, not FROM", name)
		}
		out[len(out)-1] = append(out[len(out)-1], instruction{name, strings.TrimSpace(args)})
	}
	return out
}

// last returns the arguments of the last instruction of a name in the image that is
// built.
func (d dockerfile) last(name string) string {
	args := ""
	for _, i := range d[len(d)-1] {
		if i.name == name {
			args = i.args
		}
	}
	return args
}

func TestTheImageRunsThePackagesWithoutPrivileges(t *testing.T) {
	d := parseDockerfile(t)
	for name, want := range map[string]string{
		"FROM":       "gcr.io/distroless/static-debian12:nonroot",
		"USER":       "65532:65532",
		"ENTRYPOINT": `["/operetta"]`,
		"CMD":        `["run", "/packages/..."]`,
		"ENV":        "CUE_CACHE_DIR=/tmp/cue",
	} {
		if got := d.last(name); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	for _, name := range []string{"ENTRYPOINT", "CMD"} {
		var words []string
		if err := json.Unmarshal([]byte(d.last(name)), &words); err != nil {
			t.Errorf("%s needs a shell, which the image has not: %v", name, err)
		}
	}
	for _, i := range d[len(d)-1] {
		if i.name == "RUN" {
			t.Errorf("RUN %s: the image has no shell", i.args)
		}
	}
}

func TestTheImageIsBuiltWithTheReleaseOfGoThatTheModuleAsksFor(t *testing.T) {
	content, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	var release string
	for line := range strings.Lines(string(content)) {
		if f := strings.Fields(line); len(f) == 2 && f[0] == "go" {
			release = strings.Join(strings.SplitN(f[1], ".", 3)[:2], ".")
		}
	}
	from := strings.Fields(parseDockerfile(t)[0][0].args)
	if want := "golang:" + release; !slices.Contains(from, want) {
		t.Errorf("FROM %s: want %s", strings.Join(from, " "), want)
	}
}
