package watch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

var (
	deploymentKind = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	namespaceKind  = schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}
	jobKind        = schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"}
	podKind        = schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
)

// streamOf returns the stream of a kind from a server, and the requests that it was sent.
func streamOf(t *testing.T, kind schema.GroupVersionKind, namespace string, options cache.Options, answer http.HandlerFunc) (toolscache.ListerWatcherWithContext, *[]string) {
	t.Helper()
	asked := &[]string{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*asked = append(*asked, r.URL.String()+" "+r.Header.Get("Accept"))
		w.Header().Set("Content-Type", "application/json")
		answer(w, r)
	}))
	t.Cleanup(server.Close)
	options.Mapper, options.HTTPClient = served(), server.Client()
	out, err := newStreams(&rest.Config{Host: server.URL}, namespace, options, packedOrWhole).of(kind)
	if err != nil {
		t.Fatal(err)
	}
	return toolscache.ToListerWatcherWithContext(out), asked
}

// served returns the kinds that the servers of tests have.
func served() meta.RESTMapper {
	out := meta.NewDefaultRESTMapper(nil)
	out.Add(namespaceKind, meta.RESTScopeRoot)
	for _, kind := range []schema.GroupVersionKind{deploymentKind, jobKind, podKind} {
		out.Add(kind, meta.RESTScopeNamespace)
	}
	return out
}

func says(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }
}

func TestAStreamAsksForWhatACacheHas(t *testing.T) {
	t.Parallel()
	ours, err := labels.Parse("operetta.dev/owner")
	if err != nil {
		t.Fatal(err)
	}
	for name, row := range map[string]struct {
		kind      schema.GroupVersionKind
		namespace string
		options   cache.Options
		list      metav1.ListOptions
		want      string
	}{
		"all of a kind":            {kind: deploymentKind, want: "/apis/apps/v1/deployments application/json"},
		"a namespace":              {kind: deploymentKind, namespace: "town", want: "/apis/apps/v1/namespaces/town/deployments application/json"},
		"what is in no namespace":  {kind: namespaceKind, namespace: "town", want: "/api/v1/namespaces application/json"},
		"what has a label":         {kind: namespaceKind, options: cache.Options{DefaultLabelSelector: ours}, want: "/api/v1/namespaces?labelSelector=operetta.dev%2Fowner application/json"},
		"one name":                 {kind: namespaceKind, options: cache.Options{DefaultFieldSelector: fields.OneTermEqualSelector("metadata.name", "a")}, want: "/api/v1/namespaces?fieldSelector=metadata.name%3Da application/json"},
		"the next part of a list":  {kind: namespaceKind, list: metav1.ListOptions{Limit: 500, Continue: "abc", ResourceVersion: "0"}, want: "/api/v1/namespaces?continue=abc&limit=500&resourceVersion=0 application/json"},
		"a list without selectors": {kind: namespaceKind, options: cache.Options{DefaultLabelSelector: ours}, list: metav1.ListOptions{LabelSelector: "other"}, want: "/api/v1/namespaces?labelSelector=operetta.dev%2Fowner application/json"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			from, asked := streamOf(t, row.kind, row.namespace, row.options, says(`{"kind":"List","apiVersion":"v1","items":[]}`))
			if _, err := from.ListWithContext(t.Context(), row.list); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{row.want}, *asked); diff != "" {
				t.Errorf("(-want +asked):\n%s", diff)
			}
		})
	}
}

func TestAListSaysWhatItsItemsAre(t *testing.T) {
	t.Parallel()
	item := strings.Replace(deployed("", `,"spec":{"replicas":3}`), `"apiVersion":"apps/v1","kind":"Deployment",`, "", 1)
	from, _ := streamOf(t, deploymentKind, "", cache.Options{}, says(`{"kind":"DeploymentList","apiVersion":"apps/v1","metadata":{"resourceVersion":"9","continue":"c"},"items":[`+item+`,`+oddJSON["what nobody marked"]+`]}`))
	got, err := from.ListWithContext(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	list, ok := got.(*unstructured.UnstructuredList)
	if !ok || list.GetResourceVersion() != "9" || list.GetContinue() != "c" || len(list.Items) != 2 || !isPacked(&list.Items[0]) || list.Items[1].GetKind() != "ConfigMap" {
		t.Fatalf("it is %v", got)
	}
	whole, err := unpacked(&list.Items[0])
	if err != nil || whole.GroupVersionKind() != deploymentKind || list.Items[0].GroupVersionKind() != deploymentKind {
		t.Errorf("the first item is %v, error %v", whole, err)
	}
	if n, _, _ := unstructured.NestedInt64(whole.Object, "spec", "replicas"); n != 3 {
		t.Errorf("it has %d replicas", n)
	}
}

func TestARefusalIsOne(t *testing.T) {
	t.Parallel()
	refused := func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","message":"no","code":403}`)
	}
	from, _ := streamOf(t, deploymentKind, "", cache.Options{}, refused)
	if _, err := from.ListWithContext(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("the list has error %v", err)
	}
	if _, err := from.WatchWithContext(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("the watch has error %v", err)
	}
}

func TestAListThatBreaksOffIsNone(t *testing.T) {
	t.Parallel()
	for _, text := range []string{``, `{"items":[` + deployed("", "") + `,`, `{"items":[{]}`, `[]`, `{"items":[1]}`} {
		from, _ := streamOf(t, deploymentKind, "", cache.Options{}, says(text))
		if got, err := from.ListWithContext(t.Context(), metav1.ListOptions{}); err == nil {
			t.Errorf("%q is %v", text, got)
		}
	}
}

func TestAWatchHasTheEventsOfTheServer(t *testing.T) {
	t.Parallel()
	bookmark := `{"kind":"Deployment","apiVersion":"apps/v1","metadata":{"resourceVersion":"12","annotations":{"k8s.io/initial-events-end":"true"}}}`
	gone := `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","message":"too old","code":410}`
	for name, row := range map[string]struct {
		stream string
		want   []string
	}{
		"events": {
			stream: `{"type":"ADDED","object":` + deployed("", "") + `}` + "\n" + `{"type":"MODIFIED","object":` + oddJSON["a Job"] + "}\n" + `{"type":"DELETED","object":` + deployed("", "") + "}\n",
			want:   []string{"ADDED Deployment 7", "MODIFIED Job 7", "DELETED Deployment 7"},
		},
		"without lines":           {stream: `{"type":"ADDED","object":` + deployed("", "") + `}{"type":"DELETED","object":` + deployed("", "") + `}`, want: []string{"ADDED Deployment 7", "DELETED Deployment 7"}},
		"the object first":        {stream: `{"object":` + deployed("", "") + `,"more":{},"type":"ADDED"}`, want: []string{"ADDED Deployment 7"}},
		"a bookmark":              {stream: `{"type":"BOOKMARK","object":` + bookmark + `}`, want: []string{"BOOKMARK Deployment 12 map[k8s.io/initial-events-end:true]"}},
		"an error":                {stream: `{"type":"ERROR","object":` + gone + `}`, want: []string{"ERROR Expired"}},
		"nothing":                 {},
		"an event that breaks":    {stream: `{"type":"ADDED","object":` + deployed("", "") + `}{"type":"ADDED","object":{"a"`, want: []string{"ADDED Deployment 7"}},
		"what is no JSON":         {stream: `{"type":"ADDED","object":{]}`, want: []string{"ERROR InternalError"}},
		"an event of what":        {stream: `{"type":"WHAT","object":{}}`, want: []string{"ERROR InternalError"}},
		"an event of nothing":     {stream: `{"type":"ADDED"}`, want: []string{"ERROR InternalError"}},
		"an event without a type": {stream: `{"object":{}}`, want: []string{"ERROR InternalError"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			from, asked := streamOf(t, deploymentKind, "", cache.Options{}, says(row.stream))
			events, err := from.WatchWithContext(t.Context(), metav1.ListOptions{ResourceVersion: "5"})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for e := range events.ResultChan() {
				got = append(got, describe(e))
			}
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if want := "/apis/apps/v1/deployments?allowWatchBookmarks=true&resourceVersion=5&watch=true application/json"; (*asked)[0] != want {
				t.Errorf("it asks for %s", *asked)
			}
		})
	}
}

func describe(e watch.Event) string {
	if e.Type == watch.Error {
		return fmt.Sprint(e.Type, " ", apierrors.ReasonForError(apierrors.FromObject(e.Object)))
	}
	u, _ := e.Object.(*unstructured.Unstructured)
	out := fmt.Sprint(e.Type, " ", u.GetKind(), " ", u.GetResourceVersion())
	if e.Type == watch.Bookmark {
		out += fmt.Sprint(" ", u.GetAnnotations())
	}
	return out
}

func TestAWatchEndsWithWhoWatches(t *testing.T) {
	t.Parallel()
	ended := make(chan struct{})
	from, _ := streamOf(t, deploymentKind, "", cache.Options{}, func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		close(ended)
	})
	events, err := from.WatchWithContext(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	events.Stop()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Error("it goes on")
	}
}

// Only objects without a Go type are read so: those of others have a decoder of their own.
func TestAnInformerOfAGoTypeReadsAsUsual(t *testing.T) {
	t.Parallel()
	usual := &toolscache.ListWatch{ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) { return nil, errors.New("usual") }}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(deploymentKind, meta.RESTScopeNamespace)
	s := newStreams(&rest.Config{Host: "http://127.0.0.1:1"}, "", cache.Options{Mapper: mapper, HTTPClient: http.DefaultClient}, whole)
	for name, row := range map[string]struct {
		object  runtime.Object
		streams *streams
		usual   bool
	}{
		"without a Go type":    {NewObject(deploymentKind), s, false},
		"with one":             {&metav1.PartialObjectMetadata{}, s, true},
		"without streams":      {NewObject(deploymentKind), nil, true},
		"a kind of no mapping": {NewObject(namespaceKind), s, true},
	} {
		if got := row.streams.orDefault(row.object, usual) == toolscache.ListerWatcher(usual); got != row.usual {
			t.Errorf("%s: it reads as usual: %v", name, got)
		}
	}
}
