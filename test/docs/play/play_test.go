package play

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"operetta.dev/test/controlplane"
	"operetta.dev/test/docs/internal/commands"
	"operetta.dev/test/internal/child"
	"operetta.dev/test/internal/markdown"
	"operetta.dev/test/machine"
)

// A stage is where a document is played: a folder, and a shell that remembers what
// was exported.
type stage struct {
	t       *testing.T
	dir     string
	exports []string
	// operators are those that the document has started.
	operators []*child.Process
}

// newStage returns a stage with nothing on it but the folder of the binary.
func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{t: t, dir: t.TempDir()}
	bin, err := filepath.Abs(filepath.Join(root, "bin"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(bin, filepath.Join(s.dir, "bin")); err != nil {
		t.Fatal(err)
	}
	return s
}

// copyRepository copies folders of the repository onto the stage.
func (s *stage) copyRepository(folders ...string) {
	s.t.Helper()
	for _, folder := range folders {
		if err := os.CopyFS(filepath.Join(s.dir, folder), os.DirFS(filepath.Join(root, folder))); err != nil {
			s.t.Fatal(err)
		}
	}
}

// play takes every step of a document, and stops at the first that fails.
func (s *stage) play(document string) {
	s.t.Helper()
	for _, b := range s.blocks(document) {
		if err := s.step(b); err != nil {
			s.t.Fatalf("%s: %v", b.At, err)
		}
	}
}

// writeFiles writes the files of a document, and runs nothing.
func (s *stage) writeFiles(document string) {
	s.t.Helper()
	for _, b := range s.blocks(document) {
		if b.Language != "cue" && b.Language != "yaml" {
			continue
		}
		if err := s.step(b); err != nil {
			s.t.Fatalf("%s: %v", b.At, err)
		}
	}
}

func (s *stage) blocks(document string) []markdown.Block {
	s.t.Helper()
	d, err := markdown.Read(root, document)
	if err != nil {
		s.t.Fatal(err)
	}
	blocks, err := d.Blocks()
	if err != nil {
		s.t.Fatal(err)
	}
	return blocks
}

func (s *stage) step(b markdown.Block) error {
	switch b.Language {
	case "cue":
		return s.write(b, ".cue")
	case "yaml":
		return s.write(b, ".yaml")
	case "diff":
		return s.edit(b)
	case "sh":
		return s.commands(b)
	case "console":
		return s.session(b)
	case "", "mermaid":
		return nil
	}
	return fmt.Errorf("nobody knows how to play a block of %q", b.Language)
}

// write writes the file that a block shows.
func (s *stage) write(b markdown.Block, extension string) error {
	name, err := b.Target(extension)
	if err != nil {
		return err
	}
	path := filepath.Join(s.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(b.Text+"\n"), 0o600)
}

// edit changes a file as a diff without line numbers says.
func (s *stage) edit(b markdown.Block) error {
	name, err := b.Target(".cue", ".yaml")
	if err != nil {
		return err
	}
	path := filepath.Join(s.dir, filepath.FromSlash(name))
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	edited, err := b.Edit(string(text))
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	// As an editor saves: never half of it is there.
	draft := path + "~"
	if err := os.WriteFile(draft, []byte(edited), 0o600); err != nil {
		return err
	}
	return os.Rename(draft, path)
}

// commands runs the lines of a block, each of which has to succeed.
func (s *stage) commands(b markdown.Block) error {
	for line := range strings.SplitSeq(b.Text, "\n") {
		if err := s.command(line); err != nil {
			return fmt.Errorf("%s: %w", line, err)
		}
	}
	return nil
}

func (s *stage) command(line string) error {
	if reason, left := commands.Left[line]; left {
		s.t.Logf("%s is not played: %s", line, reason)
		return nil
	}
	switch {
	case strings.HasPrefix(line, "export "):
		s.exports = append(s.exports, line)
		return nil
	case line == "make run":
		exports, err := startedPlayground(s.t)
		s.exports = append(s.exports, exports...)
		return err
	case strings.HasPrefix(line, "operetta run ") && !strings.Contains(line, "--dry-run"):
		return s.operate(line)
	}
	out, err := s.run(line)
	if err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return nil
}

// operate starts an operator, which stays until the test ends.
func (s *stage) operate(line string) error {
	process, err := child.Start(s.shell("exec " + line))
	if err != nil {
		return err
	}
	s.operators = append(s.operators, process)
	s.t.Cleanup(func() {
		end(process)
		if s.t.Failed() {
			s.t.Logf("the log of %s:\n%s", line, process.Log.Text())
		}
	})
	return await(process, "msg=running")
}

// session runs each command of a block, and compares what it prints.
func (s *stage) session(b markdown.Block) error {
	for _, part := range strings.Split("\n"+b.Text, "\n$ ")[1:] {
		line, want, _ := strings.Cut(part, "\n")
		if err := s.expect(line, want); err != nil {
			return err
		}
	}
	return nil
}

// asks is a command that asks a cluster and changes nothing.
var asks = regexp.MustCompile(`^kubectl (get|wait|describe) `)

// expect runs a command until it prints what is wanted. What asks a cluster is
// asked again for a while: the operator works at the same time.
func (s *stage) expect(line, want string) error {
	deadline := time.Now()
	if asks.MatchString(line) {
		deadline = deadline.Add(machine.Patience)
	}
	for {
		out, _ := s.run(line)
		if prints(out, want) {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("$ %s\nprints\n%s\nand not\n%s", line, out, want)
		}
		select {
		case <-s.t.Context().Done():
			return s.t.Context().Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// run runs a command and returns what it prints, on either stream.
func (s *stage) run(line string) (string, error) {
	out, err := s.shell(line).CombinedOutput()
	return string(out), err
}

// shell returns a command in the stage's folder, or, if it is a target of make or a tool
// of the Go module, in the repository. It never sees a cluster of the user's.
func (s *stage) shell(line string) *exec.Cmd {
	script := strings.Join(append(s.exports, line), "\n")
	cmd := exec.CommandContext(context.WithoutCancel(s.t.Context()), "bash", "-euo", "pipefail", "-c", script)
	cmd.Dir = s.dir
	if strings.HasPrefix(line, "make ") || strings.HasPrefix(line, "go ") {
		cmd.Dir = root
	}
	cmd.Env = append(environment(), "KUBECACHEDIR="+filepath.Join(s.dir, ".kube"))
	return cmd
}

// foreign are variables that a reader who begins does not have: those that name a
// cluster, and what a make around this test says to those that it starts.
var foreign = []string{"KUBECONFIG", controlplane.KubeconfigEnv, "MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "PWD"}

// environment is that of a reader who begins.
func environment() []string {
	own := slices.DeleteFunc(os.Environ(), func(e string) bool {
		name, _, _ := strings.Cut(e, "=")
		return slices.Contains(foreign, name)
	})
	return append(own, "NO_COLOR=1")
}

// duration is an age as kubectl prints it.
var duration = regexp.MustCompile(`\b[0-9]+(\.[0-9]+)?(ms|s|m)\b`)

// prints reports whether an output is what is wanted, apart from ages, blanks at
// the end of a line, and what three dots stand for.
func prints(out, want string) bool {
	pattern := ""
	for line := range strings.SplitSeq(normal(want), "\n") {
		if line == "..." {
			pattern += `(.*\n)*`
			continue
		}
		pattern += strings.ReplaceAll(regexp.QuoteMeta(line), `\.\.\.`, `.*`) + `\n`
	}
	return regexp.MustCompile(`^` + pattern + `$`).MatchString(normal(out) + "\n")
}

func normal(text string) string {
	var lines []string
	for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		lines = append(lines, strings.TrimRight(duration.ReplaceAllString(line, "<age>"), " "))
	}
	return strings.Join(lines, "\n")
}
