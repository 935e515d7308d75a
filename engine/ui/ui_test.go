package ui_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/explain"
	"operetta.dev/engine/history"
	"operetta.dev/engine/object"
	"operetta.dev/engine/ui"
)

// shop is a resource whose status has what would be markup.
func shop() explain.Resource {
	return explain.Summary(&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Shop", "metadata": map[string]any{"namespace": "default", "name": "my"},
		"status": map[string]any{
			"phase": "Waiting",
			"conditions": []any{map[string]any{
				"type": "Ready", "status": "False", "reason": "Waiting", "message": "<script>alert(1)</script> \uE000\uE001", "lastTransitionTime": "2026-01-01T00:00:00Z",
			}},
			"components": []any{map[string]any{"name": "<b>web</b>", "state": "Waiting", "message": "waits for \"x\" & y"}},
		},
	}})
}

// cluster is a Source that counts.
type cluster struct {
	lists, explains atomic.Int64
	err             error
	gate            chan struct{}
}

func (c *cluster) List(context.Context) ([]explain.Resource, error) {
	c.lists.Add(1)
	if c.gate != nil {
		<-c.gate
	}
	return []explain.Resource{shop()}, c.err
}

func (c *cluster) Explain(_ context.Context, ref object.Ref) (explain.Resource, error) {
	c.explains.Add(1)
	if ref.Name != "my" || ref.Kind != "Shop" || ref.Group != "example.com" {
		return explain.Resource{}, errors.New("there is no " + ref.String())
	}
	out := shop()
	out.Operator = &history.Report{Total: 1, Reconciles: []history.Reconcile{{Result: history.Success, Times: 1, Triggers: []history.Trigger{{
		Cause: history.Resource, Action: history.Changed, APIVersion: "example.com/v1", Kind: "Shop", Namespace: "default", Name: "my", Count: 1,
		Changes: []history.Change{{Manager: "<script>alert(2)</script>\uE000\uE001", Fields: []string{"spec.replicas"}}},
	}}}}}
	return out, c.err
}

const host = "127.0.0.1:8080"

// ask sends a request, and returns the status and the body.
func ask(t *testing.T, h http.Handler, method, host, path string) (int, string) {
	t.Helper()
	w, r := httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), method, path, nil)
	r.Host = host
	h.ServeHTTP(w, r)
	if policy := w.Header().Get("Content-Security-Policy"); !strings.HasPrefix(policy, "default-src 'none'") {
		t.Errorf("%s: the policy is %q", path, policy)
	}
	return w.Code, w.Body.String()
}

// TestPagesShowWhatThereIsAndNoMarkupOfIt asks for each page.
func TestPagesShowWhatThereIsAndNoMarkupOfIt(t *testing.T) {
	t.Parallel()
	const resource = "/Shop.v1.example.com/default/my"
	for name, c := range map[string]struct {
		reason, method, host, path string
		code                       int
		want                       []string
	}{
		"the list":             {"each resource has a link", "GET", host, "/", 200, []string{`<a href="/resource` + resource + `">Shop/my</a>`, "1 not ready", "&lt;script&gt;alert(1)"}},
		"a resource":           {"it has the tree, and a picture", "GET", host, "/resource" + resource, 200, []string{"&lt;b&gt;web&lt;/b&gt;", "the resource: spec.replicas by &lt;script&gt;alert(2)", `<img src="/picture` + resource}},
		"its picture":          {"it is a drawing", "GET", host, "/picture" + resource, 200, []string{"<svg", "&lt;b&gt;web"}},
		"the style":            {"it is served from here", "GET", host, "/files/style.css", 200, []string{"--good"}},
		"the head of a page":   {"HEAD reads, too", "HEAD", host, "/", 200, nil},
		"another name":         {"a page of the web that has a name for this address reads nothing", "GET", "evil.example.com", "/", 403, []string{"served as 127.0.0.1:8080 only"}},
		"another port":         {"it is another page", "GET", "127.0.0.1:1", "/", 403, nil},
		"a write":              {"nothing is written", "POST", host, "/", 405, []string{"can only be read"}},
		"a deletion":           {"nothing is deleted", "DELETE", host, "/resource" + resource, 405, nil},
		"what is not there":    {"it is said", "GET", host, "/resource/Shop.v1.example.com/default/other", 502, []string{"there is no Shop"}},
		"a kind that is none":  {"it is said", "GET", host, "/resource/x/default/my", 502, []string{"there is no"}},
		"another file":         {"templates are not served", "GET", host, "/files/list.html", 404, nil},
		"a path out of there":  {"files are those that are embedded", "GET", host, "/files/..%2f..%2fhandler.go", 404, nil},
		"a page that is none":  {"it is said", "GET", host, "/admin", 404, nil},
		"markup in the name":   {"it is escaped where it is said", "GET", host, "/resource/Shop.v1.example.com/default/%3Cscript%3E", 502, []string{"&lt;script&gt;"}},
		"a cluster-scoped one": {"its namespace is _", "GET", host, "/resource/Shop.v1.example.com/_/my", 200, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, body := ask(t, ui.New(ui.Options{Source: &cluster{}, Hosts: []string{host}}), c.method, c.host, c.path)
			if code != c.code {
				t.Errorf("%s: %d, want %d", c.reason, code, c.code)
			}
			for _, want := range c.want {
				if !strings.Contains(body, want) {
					t.Errorf("%s: the page lacks %s:\n%s", c.reason, want, body)
				}
			}
			if strings.Contains(body, "<script>alert") || strings.Contains(body, "<b>web") {
				t.Errorf("%s: markup of a status is in the page:\n%s", c.reason, body)
			}
		})
	}
}

// TestManyTabsCostNoMoreThanOne asks many times within a moment, and again later.
func TestManyTabsCostNoMoreThanOne(t *testing.T) {
	t.Parallel()
	source := &cluster{gate: make(chan struct{})}
	var passed atomic.Int64
	h := ui.New(ui.Options{Source: source, Hosts: []string{host}, Now: func() time.Time { return time.Unix(passed.Load(), 0) }})
	var tabs sync.WaitGroup
	for range 100 {
		tabs.Go(func() {
			if code, _ := ask(t, h, "GET", host, "/"); code != http.StatusOK {
				t.Errorf("a tab got %d", code)
			}
		})
	}
	source.gate <- struct{}{} // one read is under way, and the others wait for it
	close(source.gate)
	tabs.Wait()
	if n := source.lists.Load(); n != 1 {
		t.Errorf("100 tabs have cost %d reads", n)
	}
	passed.Store(10)
	if _, _ = ask(t, h, "GET", host, "/"); source.lists.Load() != 2 {
		t.Error("what is old was not read again")
	}
}

// groups is a Source whose resources are named after their group. It answers when it is asked for as many as the gate takes.
type groups struct {
	cluster

	asked chan string
	gate  chan struct{}
}

func (g *groups) Explain(_ context.Context, ref object.Ref) (explain.Resource, error) {
	g.asked <- ref.Group
	<-g.gate
	out := shop()
	out.Name = "my-" + ref.Group
	return out, nil
}

// TestAPageIsOfItsGroup asks for resources of one name in two groups at once.
func TestAPageIsOfItsGroup(t *testing.T) {
	t.Parallel()
	source := &groups{asked: make(chan string, 2), gate: make(chan struct{})}
	h := ui.New(ui.Options{Source: source, Hosts: []string{host}})
	var tabs sync.WaitGroup
	for _, group := range []string{"a.example", "b.example"} {
		tabs.Go(func() {
			if _, body := ask(t, h, "GET", host, "/resource/Shop.v1."+group+"/default/my"); !strings.Contains(body, "my-"+group) {
				t.Errorf("the page of group %s is of another one:\n%s", group, body)
			}
		})
	}
	both := time.NewTimer(10 * time.Second)
	defer both.Stop()
	for range 2 {
		select {
		case <-source.asked:
		case <-both.C:
			t.Error("the groups share a read")
		}
	}
	close(source.gate)
	tabs.Wait()
}

// TestAFailureIsShownAndNotKept has a cluster that fails, and then answers.
func TestAFailureIsShownAndNotKept(t *testing.T) {
	t.Parallel()
	source := &cluster{err: errors.New("the server is away")}
	var passed atomic.Int64
	h := ui.New(ui.Options{Source: source, Hosts: []string{host}, Now: func() time.Time { return time.Unix(passed.Load(), 0) }})
	if code, body := ask(t, h, "GET", host, "/"); code != http.StatusBadGateway || !strings.Contains(body, "the server is away") {
		t.Errorf("%d: %s", code, body)
	}
	source.err = nil
	passed.Store(2)
	if code, _ := ask(t, h, "GET", host, "/"); code != http.StatusOK {
		t.Errorf("it has not recovered: %d", code)
	}
}
