package watch

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/iotest"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"operetta.dev/engine/cluster"
	"operetta.dev/test/machine"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// both returns what reads Deployments from a server: the stream, and the client of client-go that it stands in for.
func both(t *testing.T, answer http.HandlerFunc) map[string]toolscache.ListerWatcherWithContext {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	config := &rest.Config{Host: server.URL + "/behind/a/proxy"}
	own, err := newStreams(config, "", cache.Options{Mapper: served(), HTTPClient: server.Client()}, packedOrWhole).of(deploymentKind)
	if err != nil {
		t.Fatal(err)
	}
	client, err := dynamic.NewForConfigAndClient(config, server.Client())
	if err != nil {
		t.Fatal(err)
	}
	return map[string]toolscache.ListerWatcherWithContext{
		"own":       toolscache.ToListerWatcherWithContext(own),
		"client-go": dynamicListerWatcher{client.Resource(schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"})},
	}
}

type dynamicListerWatcher struct{ dynamic.ResourceInterface }

func (d dynamicListerWatcher) ListWithContext(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	return d.List(ctx, o)
}

func (d dynamicListerWatcher) WatchWithContext(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	o.AllowWatchBookmarks = true
	return d.Watch(ctx, o)
}

// answers returns a handler that answers with a status and a body. A code of 429 says when to come again.
func answers(code int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	}
}

// refusal is the body of a refusal as an API server writes it.
func refusal(code int, reason metav1.StatusReason) string {
	return fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","reason":%q,"message":"no","details":{"retryAfterSeconds":7,"causes":[{"reason":"ResourceVersionTooLarge"}]},"code":%d}`, reason, code)
}

// errorOf says of an error what decides how an informer goes on.
func errorOf(err error) string {
	seconds, again := apierrors.SuggestsClientDelay(err)
	return fmt.Sprintf("error %q, code %v, gone %v, expired %v, many %v, internal %v, too new %v, again %v after %d",
		apierrors.ReasonForError(err), codeOf(err), apierrors.IsGone(err), apierrors.IsResourceExpired(err), apierrors.IsTooManyRequests(err), apierrors.IsInternalError(err),
		apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge), again, seconds)
}

func codeOf(err error) string {
	if status, is := err.(apierrors.APIStatus); is {
		return strconv.Itoa(int(status.Status().Code))
	}
	return "none"
}

func TestARefusalIsTheOneOfClientGo(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]http.HandlerFunc{
		"gone":            answers(http.StatusGone, refusal(http.StatusGone, metav1.StatusReasonGone)),
		"expired":         answers(http.StatusGone, refusal(http.StatusGone, metav1.StatusReasonExpired)),
		"many requests":   answers(http.StatusTooManyRequests, refusal(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests)),
		"too new":         answers(http.StatusGatewayTimeout, refusal(http.StatusGatewayTimeout, metav1.StatusReasonTimeout)),
		"broken":          answers(http.StatusInternalServerError, refusal(http.StatusInternalServerError, metav1.StatusReasonInternalError)),
		"not found":       answers(http.StatusNotFound, refusal(http.StatusNotFound, metav1.StatusReasonNotFound)),
		"a page":          answers(http.StatusBadGateway, "<html>"),
		"nothing":         answers(http.StatusServiceUnavailable, ""),
		"no API":          answers(http.StatusNotFound, "404 page not found"),
		"not logged in":   answers(http.StatusUnauthorized, refusal(http.StatusUnauthorized, metav1.StatusReasonUnauthorized)),
		"a page of a 410": answers(http.StatusGone, "<html>"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := map[string][]string{}
			for who, from := range both(t, answer) {
				_, listErr := from.ListWithContext(t.Context(), metav1.ListOptions{})
				_, watchErr := from.WatchWithContext(t.Context(), metav1.ListOptions{})
				if listErr == nil || watchErr == nil {
					t.Fatalf("%s: errors %v and %v", who, listErr, watchErr)
				}
				got[who] = []string{errorOf(listErr), errorOf(watchErr)}
			}
			if diff := cmp.Diff(got["client-go"], got["own"]); diff != "" {
				t.Errorf("(-client-go +own):\n%s", diff)
			}
		})
	}
}

func TestARequestIsTheOneOfClientGo(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]metav1.ListOptions{
		"the first list":      {ResourceVersion: "0", Limit: 500},
		"the next page":       {Limit: 500, Continue: "a b"},
		"a list of a version": {ResourceVersion: "7", ResourceVersionMatch: metav1.ResourceVersionMatchExact},
		"a list by a watch":   {SendInitialEvents: new(true), ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan, TimeoutSeconds: new(int64(300))},
		"a watch":             {ResourceVersion: "7", TimeoutSeconds: new(int64(300))},
		"selectors":           {LabelSelector: "a in (b,c)", FieldSelector: "metadata.name=x"},
	} {
		asked := make(chan string, 2)
		answer := func(w http.ResponseWriter, r *http.Request) {
			asked <- r.Method + " " + r.URL.String() + fmt.Sprint(r.Header)
			w.WriteHeader(http.StatusNotFound)
		}
		got := map[string][]string{}
		for who, from := range both(t, answer) {
			if _, err := from.ListWithContext(t.Context(), o); err == nil {
				t.Fatal("a list of what is not found")
			}
			if _, err := from.WatchWithContext(t.Context(), o); err == nil {
				t.Fatal("a watch of what is not found")
			}
			got[who] = []string{<-asked, <-asked}
		}
		if diff := cmp.Diff(got["client-go"], got["own"]); diff != "" {
			t.Errorf("%s: (-client-go +own):\n%s", name, diff)
		}
	}
}

func TestAListIsTheOneOfClientGo(t *testing.T) {
	t.Parallel()
	item := deployed("", "")
	for name, body := range map[string]string{
		"a list":                   `{"kind":"DeploymentList","apiVersion":"apps/v1","metadata":{"resourceVersion":"9","continue":"c"},"items":[` + item + `]}` + "\n",
		"items first":              `{"items":[` + item + `],"metadata":{"resourceVersion":"9"},"apiVersion":"apps/v1","kind":"DeploymentList"}`,
		"null for items":           `{"kind":"DeploymentList","apiVersion":"apps/v1","metadata":{"resourceVersion":"9"},"items":null}`,
		"an empty list":            `{"kind":"DeploymentList","apiVersion":"apps/v1","metadata":{"resourceVersion":"9"},"items":[]}`,
		"items that are an object": `{"kind":"DeploymentList","apiVersion":"apps/v1","metadata":{"resourceVersion":"9"},"items":{}}`,
		"items that are a text":    `{"kind":"DeploymentList","apiVersion":"apps/v1","metadata":{"resourceVersion":"9"},"items":"a"}`,
		"an item that is none":     `{"kind":"DeploymentList","apiVersion":"apps/v1","metadata":{"resourceVersion":"9"},"items":[1]}`,
		"an item without a kind":   `{"kind":"DeploymentList","apiVersion":"apps/v1","metadata":{"resourceVersion":"9"},"items":[{"metadata":{"name":"a"}}]}`,
		"items twice":              `{"kind":"DeploymentList","apiVersion":"apps/v1","items":[` + item + `],"items":[]}`,
		"something behind":         `{"kind":"DeploymentList","apiVersion":"apps/v1","metadata":{"resourceVersion":"9"},"items":[]}{}`,
		"what is no JSON behind":   `{"kind":"DeploymentList","apiVersion":"apps/v1","metadata":{"resourceVersion":"9"},"items":[]}<html>`,
		"nothing of a list":        `{}`,
		"an answer of a proxy":     `{"error":"please log in"}`,
		"null":                     `null`,
		"nothing":                  ``,
		"a page":                   `<html>`,
		"a broken list":            `{"kind":"DeploymentList","apiVersion":"apps/v1","metadata":{"resourceVersion":"9"},"items":[` + item,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := map[string]string{}
			for who, from := range both(t, answers(http.StatusOK, body)) {
				got[who] = describeList(from.ListWithContext(t.Context(), metav1.ListOptions{}))
			}
			if diff := cmp.Diff(got["client-go"], got["own"]); diff != "" {
				t.Errorf("(-client-go +own):\n%s", diff)
			}
		})
	}
}

// What an API server never answers is refused, though client-go takes it for a list: a cache that has nothing has the
// engine make all objects again.
func TestWhatIsNoListIsNotAnEmptyOne(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"a refusal":            refusal(http.StatusForbidden, metav1.StatusReasonForbidden),
		"no items":             `{"kind":"DeploymentList","apiVersion":"apps/v1","metadata":{"resourceVersion":"9"}}`,
		"items without kind":   `{"apiVersion":"apps/v1","metadata":{"resourceVersion":"9"},"items":[]}`,
		"an item that is null": `{"kind":"DeploymentList","apiVersion":"apps/v1","metadata":{"resourceVersion":"9"},"items":[null]}`,
	} {
		from, _ := streamOf(t, deploymentKind, "", cache.Options{}, says(body))
		if got, err := from.ListWithContext(t.Context(), metav1.ListOptions{}); err == nil {
			t.Errorf("%s: it is %v", name, got)
		}
	}
}

// A proxy compresses large lists. What is cut off has all of its objects, maybe, but not its checksum.
func TestACompressedListIsReadToItsEnd(t *testing.T) {
	t.Parallel()
	var all bytes.Buffer
	zip := gzip.NewWriter(&all)
	large := deployed("", `,"data":"`+strings.Repeat("x", 3<<20)+`"`)
	_, _ = io.WriteString(zip, `{"kind":"DeploymentList","apiVersion":"apps/v1","items":[`+large+","+deployed("", "")+"]}")
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	for cut, want := range map[int]string{0: "DeploymentList, apps/v1, , , apps/v1, Kind=Deployment shop, apps/v1, Kind=Deployment shop", 4: "an error", 100: "an error"} {
		for who, from := range both(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(all.Bytes()[:all.Len()-cut])
		}) {
			if got := describeList(from.ListWithContext(t.Context(), metav1.ListOptions{})); got != want {
				t.Errorf("%s: without %d bytes, it is %s", who, cut, got)
			}
		}
	}
}

// describeList says what is in a list.
func describeList(from runtime.Object, err error) string {
	list, is := from.(*unstructured.UnstructuredList)
	if err != nil || !is {
		return "an error"
	}
	out := []string{list.GetKind(), list.GetAPIVersion(), list.GetResourceVersion(), list.GetContinue()}
	for _, item := range list.Items {
		out = append(out, item.GroupVersionKind().String()+" "+item.GetName())
	}
	return strings.Join(out, ", ")
}

func TestAnEventIsTheOneOfClientGo(t *testing.T) {
	t.Parallel()
	object := deployed("", "")
	for name, body := range map[string]string{
		"an event":                `{"type":"ADDED","object":` + object + `}`,
		"what has no kind":        `{"type":"ADDED","object":{"apiVersion":"apps/v1","metadata":{"name":"a"}}}`,
		"what has no version":     `{"type":"ADDED","object":{"kind":"Deployment","metadata":{"name":"a"}}}`,
		"a bookmark of no kind":   `{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"7"}}}`,
		"an object of nothing":    `{"type":"ADDED","object":{}}`,
		"null":                    `{"type":"ADDED","object":null}`,
		"an error":                `{"type":"ERROR","object":` + refusal(http.StatusGone, metav1.StatusReasonExpired) + `}`,
		"a wait":                  `{"type":"ERROR","object":` + refusal(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests) + `}`,
		"an error of what":        `{"type":"ERROR","object":` + object + `}`,
		"a type in small":         `{"type":"added","object":` + object + `}`,
		"an event of what":        `{"type":"WHAT","object":` + object + `}`,
		"an object before a type": `{"object":` + object + `,"type":"DELETED"}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := map[string][]string{}
			for who, from := range both(t, answers(http.StatusOK, body)) {
				events, err := from.WatchWithContext(t.Context(), metav1.ListOptions{})
				if err != nil {
					t.Fatal(err)
				}
				for e := range events.ResultChan() {
					got[who] = append(got[who], describe(e))
				}
			}
			if diff := cmp.Diff(got["client-go"], got["own"]); diff != "" {
				t.Errorf("(-client-go +own):\n%s", diff)
			}
		})
	}
}

// The cache has to remember that a Job has ended. In a list, a Job does not say that it is one.
func TestAJobIsNotPackedBeforeTheCacheHasSeenThatItEnded(t *testing.T) {
	t.Parallel()
	const about = `"metadata":{"name":"a","namespace":"default","annotations":{"operetta.dev/owner":"Shop.example.com default/shop"}}`
	for kind, ended := range map[schema.GroupVersionKind]string{
		jobKind: about + `,"status":{"conditions":[{"type":"Complete","status":"True"}]}`,
		podKind: about + `,"spec":{"restartPolicy":"Never"},"status":{"phase":"Failed"}`,
	} {
		version := `"apiVersion":"` + kind.GroupVersion().String() + `","kind":"` + kind.Kind
		from, _ := streamOf(t, kind, "", cache.Options{}, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Get("watch") == "" {
				_, _ = io.WriteString(w, `{`+version+`List","items":[{`+ended+`}]}`)
				return
			}
			_, _ = io.WriteString(w, `{"type":"ADDED","object":{`+version+`",`+ended+`}}`)
		})
		list, err := from.ListWithContext(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		events, err := from.WatchWithContext(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		event := <-events.ResultChan()
		events.Stop()
		items, _ := list.(*unstructured.UnstructuredList)
		for by, object := range map[string]runtime.Object{"a list": &items.Items[0], "a watch": event.Object} {
			c := &Caches{finished: newFinishedObjects()}
			kept, err := c.transform(object)
			if err != nil {
				t.Fatal(err)
			}
			u, _ := kept.(*unstructured.Unstructured)
			if known := c.Finished(cluster.RefOf(u)); !isPacked(u) || known == nil || known.GroupVersionKind() != kind {
				t.Errorf("%s by %s: what has ended is %v", kind.Kind, by, known)
			}
		}
	}
}

// Behind a load balancer, an API server that ends breaks connections without an answer. The objects did not change by that:
// to list them again, for each kind at once, would be what the next one starts with.
func TestAConnectionThatBreaksCostsNoList(t *testing.T) {
	t.Parallel()
	var lists, watches atomic.Int32
	const broken = 2
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") == "" {
			lists.Add(1)
			_, _ = io.WriteString(w, `{"kind":"DeploymentList","apiVersion":"apps/v1","metadata":{"resourceVersion":"5"},"items":[]}`)
			return
		}
		if r.URL.Query().Get("sendInitialEvents") != "" {
			w.WriteHeader(http.StatusUnprocessableEntity)
			return
		}
		if watches.Add(1) <= broken {
			panic(http.ErrAbortHandler)
		}
		_, _ = io.WriteString(w, `{"type":"ADDED","object":`+deployed("", "")+"}\n")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	t.Cleanup(server.Close)
	from, err := newStreams(&rest.Config{Host: server.URL}, "", cache.Options{Mapper: served(), HTTPClient: server.Client()}, whole).of(deploymentKind)
	if err != nil {
		t.Fatal(err)
	}
	store := toolscache.NewStore(toolscache.MetaNamespaceKeyFunc)
	go toolscache.NewReflector(from, NewObject(deploymentKind), store, 0).RunWithContext(t.Context())
	machine.Eventually(t, "the object is there", func() bool { return len(store.ListKeys()) == 1 })
	if n := lists.Load(); n != 1 {
		t.Errorf("%d watches that broke while they began cost %d lists", broken, n-1)
	}
}

// Those who read watches tell by the error of the network whether one has ended.
func TestTheErrorOfAConnectionIsItself(t *testing.T) {
	t.Parallel()
	reset := &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
	stream := `{"type":"ADDED","object":` + deployed("", "") + "}\n"
	for at := range len(stream) + 1 {
		d := &eventDecoder{body: io.NopCloser(io.MultiReader(strings.NewReader(stream[:at]), iotest.ErrReader(reset))), decode: packedOrWhole, note: func(*reader, error) {}}
		_, _, err := d.Decode()
		if err == nil {
			_, _, err = d.Decode()
		}
		if !utilnet.IsProbableEOF(err) {
			t.Errorf("after %q, it is %v", stream[:at], err)
		}
		d = &eventDecoder{body: io.NopCloser(strings.NewReader(stream[:at])), decode: packedOrWhole, note: func(*reader, error) {}}
		_, _, err = d.Decode()
		if err == nil {
			_, _, err = d.Decode()
		}
		if err != io.EOF && err != io.ErrUnexpectedEOF { //nolint:errorlint // as the library compares them
			t.Errorf("at the end after %q, it is %v", stream[:at], err)
		}
	}
}

// listsByWatch is an API server that has one object of each kind, and no lists but those by a watch. It calls a function for
// each request.
func listsByWatch(t *testing.T, asked func(*http.Request)) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked(r)
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Query().Get("sendInitialEvents") == "" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		object := `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"resourceVersion":"5","name":"a","namespace":"town"`
		switch {
		case strings.Contains(r.Header.Get("Accept"), "PartialObjectMetadata"):
			object = strings.Replace(strings.Replace(object, "apps/v1", "meta.k8s.io/v1", 1), "Deployment", "PartialObjectMetadata", 1)
		case strings.HasSuffix(r.URL.Path, "/namespaces"):
			object = `{"apiVersion":"v1","kind":"Namespace","metadata":{"resourceVersion":"5","name":"a"`
		}
		_, _ = io.WriteString(w, `{"type":"ADDED","object":`+object+"}}}\n"+`{"type":"BOOKMARK","object":`+object+`,"annotations":{"k8s.io/initial-events-end":"true"}}}}`+"\n")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	t.Cleanup(server.Close)
	return server
}

// A connectionTo is one to a server.
type connectionTo struct {
	Connection

	server *httptest.Server
}

func (c connectionTo) GetConfig() *rest.Config        { return &rest.Config{Host: c.server.URL} }
func (c connectionTo) GetHTTPClient() *http.Client    { return c.server.Client() }
func (c connectionTo) GetScheme() *runtime.Scheme     { return runtime.NewScheme() }
func (c connectionTo) GetRESTMapper() meta.RESTMapper { return served() }
func (c connectionTo) GetLogger() logr.Logger         { return logr.Discard() }

func TestACacheOfANamespaceAsksForThatNamespace(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	asked := map[string]bool{}
	server := listsByWatch(t, func(r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		asked[r.URL.Path+" "+r.URL.Query().Get("labelSelector")] = true
	})
	ours, err := labels.Parse("operetta.dev/owner")
	if err != nil {
		t.Fatal(err)
	}
	of, err := NewCache(connectionTo{server: server}, "town", cache.Options{DefaultLabelSelector: ours})
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = of.Start(t.Context()) }()
	of.WaitForCacheSync(t.Context()) // it has no kinds yet
	metadata := &metav1.PartialObjectMetadata{}
	metadata.SetGroupVersionKind(deploymentKind)
	for object, key := range map[client.Object]client.ObjectKey{
		NewObject(deploymentKind): {Namespace: "town", Name: "a"}, NewObject(namespaceKind): {Name: "a"}, metadata: {Namespace: "town", Name: "a"},
	} {
		if err := of.Get(t.Context(), key, object); err != nil || object.GetResourceVersion() != "5" {
			t.Errorf("%s is %v, error %v", key, object, err)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	want := map[string]bool{"/apis/apps/v1/namespaces/town/deployments operetta.dev/owner": true, "/api/v1/namespaces operetta.dev/owner": true}
	if diff := cmp.Diff(want, asked); diff != "" {
		t.Errorf("(-want +asked):\n%s", diff)
	}
}
