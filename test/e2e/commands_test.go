package e2e

import (
	"bufio"
	"errors"
	"flag"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/test/harness"
)

var update = flag.Bool("update", false, "write what the commands print into the scripts of testdata/commands")

// commandsNamespace is in what the scripts expect.
const commandsNamespace = "team-a"

// TestCommandsPrintTheirGoldens plays each testdata/commands/*.txtar: what a user types who has a cluster, and what
// they see. The cluster has three shops, one that is ready, one whose goods have no shelf, and one whose ConfigMap is
// somebody else's. A script only reads.
func TestCommandsPrintTheirGoldens(t *testing.T) {
	t.Parallel()
	s := &env{harness.NewEnvIn(t, commandsNamespace)}
	text, err := os.ReadFile("testdata/shop/shop.cue")
	if err != nil {
		t.Fatal(err)
	}
	dir, capsules := harness.WritePackage(t, "shop", string(text)), filepath.Join(t.TempDir(), "capsules")
	s.StartOperator(dir, "--record", capsules)
	shop := func(name string) *unstructured.Unstructured {
		return harness.Object("shops.example.com/v1", "Shop", s.Namespace, name)
	}
	s.Create(s.ConfigMap("west", map[string]any{"made": "by hand"}))
	for name, spec := range map[string]map[string]any{"north": {}, "south": {"shelf": "oak"}, "west": {}} {
		cr := shop(name)
		cr.Object["spec"] = spec
		s.Create(cr)
	}
	s.ExpectResourceReady(shop("north"))
	s.ExpectNotReady(shop("south"), "NotReady", "PersistentVolumeClaim goods-south-goods-0 is Pending")
	s.ExpectNotReady(shop("west"), "OwnedByAnother", "takes it over")
	s.WaitUntilIdle()
	// Managed fields have the second of a write, and explain has the newest first: the shops were written last.
	idle := time.Now().Truncate(time.Second)
	harness.Eventually(t, "another second", func() error {
		if time.Now().Truncate(time.Second).Equal(idle) {
			return harness.ErrNotYet
		}
		return nil
	})
	for _, name := range []string{"north", "south", "west"} {
		s.Patch(shop(name), harness.Annotation("example.com/visited", "true"))
	}
	s.WaitUntilIdle()
	clerk := s.Tenant("clerk", s.Namespace, harness.Rule("shops.example.com", []any{"get", "list"}, "shops"), harness.Rule("", []any{"get"}, "configmaps"))
	stranger := s.Tenant("stranger", s.Namespace)
	testscript.Run(t, testscript.Params{
		Dir: "testdata/commands", UpdateScripts: *update, RequireExplicitExec: true, RequireUniqueNames: true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("NO_COLOR", "1")
			e.Setenv("PATH", filepath.Dir(harness.Suite.Operetta)+string(os.PathListSeparator)+e.Getenv("PATH"))
			e.Setenv("KUBECONFIG", s.AdminKubeconfig())
			e.Setenv("CLERK", clerk.Kubeconfig)
			e.Setenv("STRANGER", stranger.Kubeconfig)
			return errors.Join(
				os.CopyFS(filepath.Join(e.WorkDir, "shop"), os.DirFS(dir)),
				copyFirst(capsulesOf(capsules, s.Namespace, "north"), filepath.Join(e.WorkDir, "north.capsule.json")),
			)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exitsTidied, "visits": visitPage},
	})
}

// copyFirst copies the first of some files.
func copyFirst(files []string, to string) error {
	if len(files) == 0 {
		return errors.New("nothing was recorded")
	}
	data, err := os.ReadFile(files[0])
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o600)
}

// changing is what differs from run to run, and what stands for it. A table keeps its columns.
var changing = []struct {
	pattern *regexp.Regexp
	by      string
}{
	{regexp.MustCompile(`127\.0\.0\.1:[0-9]{2,}`), "SERVER"},
	{regexp.MustCompile(`0/[0-9]+ nodes`), "0/N nodes"}, // other tests have nodes of their own
	{regexp.MustCompile(`\b20[0-9-]{8}T[0-9:.]+Z`), "TIME"},
	{regexp.MustCompile(`\b[0-9]{2}:[0-9]{2}:[0-9]{2}\b`), "CLOCK"},
	{regexp.MustCompile(`\b[0-9]+(m?s|m[0-9]+s|m) ago`), "AGE ago"},
	{regexp.MustCompile(`\bfor [0-9]+(m?s|m[0-9]+s|m)\b`), "for AGE"},
	{regexp.MustCompile(`([0-9]/[0-9] {2,})[0-9][0-9ms]* {2,}`), "${1}AGE    "},
	{regexp.MustCompile(`([0-9]/[0-9] +)[0-9][0-9ms]*\b`), "${1}AGE"},
	{regexp.MustCompile(`"[0-9a-f]{16}"`), `"DIGEST"`},
	{regexp.MustCompile(`sha256:[0-9a-f]{8,}`), "sha256:DIGEST"},
	{regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`), "UID"},
	{regexp.MustCompile(`("resourceVersion": )"[0-9]+"`), `$1"N"`},
}

// tidied returns a text without what differs from run to run. It fails the script if it shows a Secret.
func tidied(ts *testscript.TestScript, text string) string {
	if strings.Contains(text, "canary-of-the-goldens") {
		ts.Fatalf("a secret is shown")
	}
	for _, c := range changing {
		text = c.pattern.ReplaceAllString(text, c.by)
	}
	return text
}

// exitsTidied runs a program that must end with an exit code, and tidies what it prints: exits 1 operetta status.
func exitsTidied(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM [ARGS]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	err = ts.Exec(args[1], args[2:]...)
	if exit, is := errors.AsType[*exec.ExitError](err); is {
		got, err = exit.ExitCode(), nil
	}
	ts.Check(err)
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
	_, err = ts.Stdout().Write([]byte(tidied(ts, ts.ReadFile("stdout"))))
	ts.Check(err)
	_, err = ts.Stderr().Write([]byte(tidied(ts, ts.ReadFile("stderr"))))
	ts.Check(err)
}

// tags matches what a browser does not show.
var tags = regexp.MustCompile(`<[^>]*>`)

// visitPage starts a program that serves pages, prints what it says and the text of one of its pages, and ends it:
// visits / operetta ui shops. The program has to end well.
func visitPage(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: visits PATH PROGRAM [ARGS]")
	}
	cmd := exec.Command(harness.Suite.Operetta, args[2:]...)
	cmd.Dir, cmd.Env = ts.MkAbs("."), append(os.Environ(), "KUBECONFIG="+ts.Getenv("KUBECONFIG"), "NO_COLOR=1")
	out, err := cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	defer func() { _ = cmd.Process.Kill() }()
	line, err := bufio.NewReader(out).ReadString('\n')
	ts.Check(err)
	url, _, _ := strings.Cut(line, " ")
	answer, err := http.Get(strings.TrimSuffix(url, "/") + args[0])
	ts.Check(err)
	defer func() { _ = answer.Body.Close() }()
	page := new(strings.Builder)
	_, err = bufio.NewReader(answer.Body).WriteTo(page)
	ts.Check(err)
	ts.Check(cmd.Process.Signal(syscall.SIGINT))
	ts.Check(cmd.Wait())
	text := answer.Status + "\n"
	for part := range strings.Lines(tags.ReplaceAllString(page.String(), " ")) {
		if words := strings.Join(strings.Fields(part), " "); words != "" {
			text += words + "\n"
		}
	}
	_, err = ts.Stdout().Write([]byte(tidied(ts, line+text)))
	ts.Check(err)
}
