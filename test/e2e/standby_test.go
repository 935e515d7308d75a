package e2e

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/test/harness"
	"operetta.dev/test/machine"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// as returns the environment of a process with a user of its own, by whom the audit log tells it from others.
func (s *env) as(name string) *env {
	s.T.Helper()
	return &env{s.As(name)}
}

// leading are the flags of processes of the Packages of a test of which one leads.
func (s *env) leading() []string {
	return []string{"--packages-from-cluster", "--package-selector", "test=" + s.Namespace, "--leader-elect", "--leader-elect-namespace", s.Namespace}
}

// mustJudge waits until the webhooks refuse a resource that has a word in its note.
func mustJudge(w *harness.Webhooks, p *harness.PackageObject, s *env, name, word string) {
	s.T.Helper()
	w.Await(p.Thing(s.Env, name, map[string]any{"note": word}))
}

// A process that stands by judges the resources of Packages by what the leader serves, when that changes, too, and goes on with that
// while it takes over.
func TestW47AStandbyServesWebhooksOfPackages(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	p := s.NewPackageObject("objstanding")
	w := s.NewWebhooks(newTestPackage(t, "objstanding", webhookBody).Dir)
	// The first one leads, and serves on another port than the API server calls.
	other := *w
	other.Port = harness.FreePort(t)
	leader := s.as("leader")
	first := leader.StartOperator(append(s.leading(), other.Flags()...)...)
	first.ExpectLog(leaseAcquiredText)
	p.Apply(p.InlineBody(webhookBody))
	p.Expect("Ready", "True", "Served")
	cr := s.Create(p.Thing(s.Env, "web", map[string]any{"replicas": int64(1)}))
	s.ExpectResourceReady(cr)

	from := harness.MarkAudit(t)
	next := s.as("standby")
	standby := next.StartOperator(append(s.leading(), w.Flags()...)...)
	mustJudge(w, p, s, "early", "forbidden")
	p.Apply(p.InlineBody(strings.ReplaceAll(webhookBody, "forbidden", "banned")))
	p.Expect("Ready", "True", "Served")
	mustJudge(w, p, s, "changed", "banned")
	if err := harness.Suite.Admin.Create(t.Context(), p.Thing(s.Env, "allowed", map[string]any{"note": "forbidden"}), client.DryRunAll); err != nil {
		t.Errorf("the standby refuses what the leader does not any more: %v", err)
	}
	next.WaitUntilIdle()
	if strings.Contains(standby.Log.From(0), leaseAcquiredText) {
		t.Fatal("the process that was asked leads")
	}
	if wrote := s.RequestsOf(from, next.User).Writes(); len(wrote) > 0 { // the plan of a dry run is made of dry runs
		t.Errorf("the process that stands by wrote: %s", wrote)
	}

	// No request goes unjudged while it takes over, and the resource is not written because of that.
	from = harness.MarkAudit(t)
	first.Stop()
	judged := 0
	harness.Eventually(t, "the standby to decide about the Package", func() error {
		if err := harness.Suite.Admin.Create(t.Context(), p.Thing(s.Env, "meanwhile", map[string]any{"note": "banned"}), client.DryRunAll); err == nil || !strings.Contains(err.Error(), "denied the request") {
			t.Errorf("after %d requests, one is not judged: %v", judged, err)
		}
		judged++
		if !strings.Contains(standby.Log.From(0), "this process decides about a Package that it has followed") {
			return harness.ErrNotYet
		}
		return nil
	})
	t.Logf("%d requests were judged meanwhile", judged)
	s.Patch(cr, harness.Spec(map[string]any{"replicas": int64(2)}))
	s.ExpectData("web", "replicas", "2")
	if wrote := s.RequestsOf(from, next.User).Writes().OfResource("configmaps"); len(wrote) != 1 {
		t.Errorf("one edit is written by %s", wrote)
	}
	if n := strings.Count(standby.Log.From(0), "package loaded"); n != 2 {
		t.Errorf("the package was loaded %d times, and there are 2 versions", n)
	}
	s.Patch(p.Ref(), map[string]any{"spec": p.InlineBody(webhookBody).Object["spec"]})
	mustJudge(w, p, s, "again", "forbidden")
}

// twoVersions is a package whose versions are converted to each other.
const twoVersions = `
#Spec: rooms: count: int & <=100 | *2
#Old: count:         int & <=100 | *2
versions: v1: storage: true
versions: v1beta1: {
	spec: #Old
	convert: v1: {
		to: {given: #Old, spec: rooms: count: given.count}
		from: {given: #Spec, spec: count: given.rooms.count}
	}
}
components: web: objects: map: {
	apiVersion: "v1"
	kind:       "ConfigMap"
	metadata: name: cr.metadata.name
	data: rooms: "\(cr.spec.rooms.count)"
}
`

// convert asks a process to convert a resource, as an API server does, and returns the spec.
func convert(t *testing.T, w *harness.Webhooks, u *unstructured.Unstructured, to string) (any, error) {
	t.Helper()
	review := map[string]any{"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "request": map[string]any{
		"uid": "1", "desiredAPIVersion": to, "objects": []any{u.Object},
	}}
	asker := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	defer asker.CloseIdleConnections()
	resp, err := asker.Post("https://127.0.0.1:"+w.Port+"/convert", "application/json", bytes.NewReader(harness.Encode(t, review)))
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", resp.Status, text)
	}
	var answer struct {
		Response struct {
			ConvertedObjects []unstructured.Unstructured
			Result           map[string]any
		}
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return nil, err
	}
	if len(answer.Response.ConvertedObjects) != 1 {
		return nil, fmt.Errorf("it has converted nothing: %v", answer.Response.Result)
	}
	return answer.Response.ConvertedObjects[0].Object["spec"], nil
}

func TestAStandbyConvertsResourcesOfPackages(t *testing.T) {
	t.Parallel()
	machine.Thorough(t)
	s := newEnv(t)
	p := s.NewPackageObject("objconverted")
	w := s.NewWebhooks(newTestPackage(t, "objconverted", twoVersions).Dir)
	other := *w
	other.Port = harness.FreePort(t)
	s.StartOperator(append(s.leading(), other.Flags()...)...).ExpectLog(leaseAcquiredText)
	p.Apply(p.InlineBody(twoVersions))
	p.Expect("Ready", "True", "Served")
	standby := s.StartOperator(append(s.leading(), w.Flags()...)...)
	old := p.Thing(s.Env, "old", map[string]any{"count": int64(7)})
	old.SetAPIVersion("objconverted.example.com/v1beta1")
	harness.Eventually(t, "the standby to convert", func() error {
		spec, err := convert(t, w, old, "objconverted.example.com/v1")
		if got := string(harness.Encode(t, spec)); err == nil && got != `{"rooms":{"count":7}}` {
			t.Fatalf("it is converted to %s", got)
		}
		return err
	})
	if strings.Contains(standby.Log.From(0), leaseAcquiredText) {
		t.Error("the process that was asked leads")
	}
}

// What the leader has decided and a standby has not loaded yet is not undone when that one takes over.
func TestATakeoverInTheMiddleOfAChangeUndoesNothing(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	p := s.NewPackageObject("objhandedover")
	first, next := s.as("leader"), s.as("standby")
	leader := first.StartOperator(s.leading()...)
	leader.ExpectLog(leaseAcquiredText)
	p.Apply(p.InlineBody(note("a")))
	p.Expect("Ready", "True", "Served")
	var all []*unstructured.Unstructured
	for i := range 5 {
		all = append(all, s.Create(p.Thing(s.Env, fmt.Sprint("r", i), nil)))
	}
	for _, cr := range all {
		s.ExpectResourceReady(cr)
	}
	standby := next.StartOperator(s.leading()...)
	standby.ExpectLog("package loaded", p.Name)
	p.Apply(p.InlineBody(note("b")))
	for _, cr := range all {
		s.ExpectData("note-"+cr.GetName(), "version", "b")
	}
	from := harness.MarkAudit(t)
	leader.Stop()
	standby.ExpectLog(leaseAcquiredText)
	for _, cr := range all {
		s.Patch(cr, harness.Spec(map[string]any{"text": "x"}))
	}
	for _, cr := range all {
		s.ExpectData("note-"+cr.GetName(), "text", "x")
	}
	if wrote := s.RequestsOf(from, next.User).Writes().OfResource("configmaps"); len(wrote) != len(all) {
		t.Errorf("%d edits are written by %s", len(all), wrote)
	}
	s.expectNotesOf("b", all)
}

// expectNotesOf fails the test unless the notes of all resources have a version.
func (s *env) expectNotesOf(version string, all []*unstructured.Unstructured) {
	s.T.Helper()
	for _, cr := range all {
		if got := harness.Field(s.Get("ConfigMap", "note-"+cr.GetName()), "data", "version"); got != version {
			s.T.Errorf("%s has the version %v", cr.GetName(), got)
		}
	}
}
