package image

import (
	"encoding/json"
	"go/version"
	"os"
	"path/filepath"
	"regexp"
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

func TestJ9TheImageRunsThePackagesWithoutPrivileges(t *testing.T) {
	d := parseDockerfile(t)
	bases := d.bases()
	if last := bases[len(bases)-1]; last.name != "gcr.io/distroless/static-debian12" || last.tag != "nonroot" {
		t.Errorf("the image is made from %s:%s", last.name, last.tag)
	}
	for name, want := range map[string]string{
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

// A base is an image that a stage begins with.
type base struct{ name, tag, digest string }

// bases returns the images that are no stages of the Dockerfile itself.
func (d dockerfile) bases() []base {
	var out []base
	stages := map[string]bool{}
	for _, stage := range d {
		words := slices.DeleteFunc(strings.Fields(stage[0].args), func(w string) bool { return strings.HasPrefix(w, "--") })
		if !stages[words[0]] {
			image, digest, _ := strings.Cut(words[0], "@")
			name, tag, _ := strings.Cut(image, ":")
			out = append(out, base{name, tag, digest})
		}
		if len(words) == 3 && strings.EqualFold(words[1], "AS") {
			stages[words[2]] = true
		}
	}
	return out
}

func TestEachBaseImageIsNamedByTagAndDigest(t *testing.T) {
	digest := regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)
	bases := parseDockerfile(t).bases()
	if len(bases) == 0 {
		t.Error("no stage begins with an image")
	}
	for _, b := range bases {
		if b.tag == "" || !digest.MatchString(b.digest) {
			t.Errorf("FROM %s:%s@%s: a tag says what it is, and only a digest says that it is the same tomorrow", b.name, b.tag, b.digest)
		}
	}
}

func TestTheImageIsBuiltWithAGoThatTheModuleMayBeBuiltWith(t *testing.T) {
	content, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	wanted := ""
	for line := range strings.Lines(string(content)) {
		if f := strings.Fields(line); len(f) == 2 && f[0] == "go" {
			wanted = "go" + f[1]
		}
	}
	i := slices.IndexFunc(parseDockerfile(t).bases(), func(b base) bool { return b.name == "golang" })
	if i < 0 {
		t.Fatal("no stage begins with golang")
	}
	tag, _, _ := strings.Cut(parseDockerfile(t).bases()[i].tag, "-")
	if has := "go" + tag; !version.IsValid(has) || version.Compare(has, wanted) < 0 {
		t.Errorf("the image is built with %s, and go.mod asks for %s", has, wanted)
	}
}
