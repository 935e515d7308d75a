package ui_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"operetta.dev/engine/explain"
	"operetta.dev/engine/object"
	"operetta.dev/engine/status"
	"operetta.dev/engine/ui"
)

var update = flag.Bool("update", false, "write the screenshot of docs/ui.md")

// browser returns the path of a headless browser. The test is skipped where there is none: nothing else needs one.
func browser(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("there is no chromium here; Debian's package chromium has it")
	return ""
}

// rollout is a cluster with one resource, which becomes ready after some reads.
type rollout struct{ reads, readyAfter atomic.Int64 }

// noon is the time in the screenshot.
var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func (c *rollout) List(context.Context) ([]explain.Resource, error) {
	one, _ := c.Explain(context.Background(), object.Ref{})
	other := one
	other.Name, other.Namespace, other.Health, other.Message, other.Phase, other.Ready = "blog", "team-b", explain.Ready, "", status.PhaseReady, "4/4"
	return []explain.Resource{one, other}, nil
}

func (c *rollout) Explain(context.Context, object.Ref) (explain.Resource, error) {
	since := noon.Add(-90 * time.Second)
	of := func(kind, name string, health explain.Health, message string) explain.Object {
		return explain.Object{APIVersion: "apps/v1", Kind: kind, Namespace: "team-a", Name: name, Health: health, Message: message}
	}
	web := of("Deployment", "shop", explain.NotReady, "1 of 3 replicas are available")
	web.Causes = []explain.Object{of("Pod", "shop-6d4cf56db6-x7k2p", explain.NotReady, "ImagePullBackOff: Back-off pulling image \"nginx:1.99\"")}
	out := explain.Resource{
		Object: explain.Object{APIVersion: "example.com/v1", Kind: "WebShop", Namespace: "team-a", Name: "shop", Health: explain.NotReady, Message: "web: waiting for verify.available: 1, wanted >= 3"},
		Phase:  status.PhaseWaiting, Ready: "1/3", Generation: 2, ObservedGeneration: 2, Package: "webshop",
		Components: []explain.Component{
			{Name: "config", State: status.Verified, Objects: []explain.Object{of("ConfigMap", "shop", explain.Ready, "")}},
			{Name: "web", State: status.Applied, Message: "waiting for verify.available: 1, wanted >= 3 (webshop/web.cue:48)", Since: &since, DependsOn: []string{"config"}, Blocks: "ingress", Objects: []explain.Object{web, of("Service", "shop", explain.Ready, "")}},
			{Name: "ingress", State: status.Waiting, Message: "waiting for web to be verified", Since: &since, DependsOn: []string{"web"}},
		},
	}
	if after := c.readyAfter.Load(); after > 0 && c.reads.Add(1) > after {
		out.Health, out.Message, out.Phase, out.Ready = explain.Ready, "", status.PhaseReady, "3/3"
	}
	return out, nil
}

// serve serves the pages of a source on a real port.
func serve(t *testing.T, source ui.Source, now func() time.Time) string {
	t.Helper()
	server := httptest.NewUnstartedServer(nil)
	address := server.Listener.Addr().String()
	server.Config.Handler = ui.New(ui.Options{Source: source, Hosts: []string{address}, Cluster: "https://cluster.example.com", Now: now})
	server.Start()
	t.Cleanup(server.Close)
	return "http://" + address
}

// hurried is a clock that goes ten seconds on whenever somebody looks: a browser without a screen lets time pass faster
// than it is, and would be shown what is kept.
func hurried() func() time.Time {
	var looks atomic.Int64
	return func() time.Time { return noon.Add(time.Duration(looks.Add(1)) * 10 * time.Second) }
}

// TestABrowserShowsWhatChanges opens the list in a browser, which refreshes it until the resource is ready: the script
// runs under the policy of the page.
func TestABrowserShowsWhatChanges(t *testing.T) {
	t.Parallel()
	path := browser(t)
	source := &rollout{}
	source.readyAfter.Store(1)
	page := browse(t, path, serve(t, source, hurried())+"/", "--virtual-time-budget=15000", "--dump-dom")
	if !strings.Contains(page, "2 resources</h1>") || strings.Contains(page, "not ready") {
		t.Errorf("the page does not show that the resource has become ready:\n%s", page)
	}
}

// TestTheScreenshotOfTheDocumentsCanBeMade opens a resource in a browser, and makes docs/ui.png with -update.
func TestTheScreenshotOfTheDocumentsCanBeMade(t *testing.T) {
	t.Parallel()
	path, file := browser(t), filepath.Join(t.TempDir(), "ui.png")
	if *update {
		file = filepath.Join("..", "..", "docs", "ui.png")
	}
	browse(t, path, serve(t, &rollout{}, func() time.Time { return noon })+"/resource/WebShop.v1.example.com/team-a/shop", "--screenshot="+file, "--window-size=900,760", "--hide-scrollbars")
	data, err := os.ReadFile(file)
	if err != nil || !bytes.HasPrefix(data, []byte("\x89PNG")) || len(data) < 10_000 {
		t.Errorf("%d bytes, %v", len(data), err)
	}
}

// browse runs a headless browser with a profile of its own, and returns what it prints.
func browse(t *testing.T, path, url string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	args = append([]string{"--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--user-data-dir=" + t.TempDir()}, append(args, url)...)
	cmd := exec.CommandContext(ctx, path, args...)
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	if err := cmd.Run(); err != nil {
		t.Fatal(errors.Join(err, errors.New(problems.String())))
	}
	return out.String()
}
