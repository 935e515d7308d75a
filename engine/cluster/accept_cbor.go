package cluster

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"mime"
	"net/http"
	"os"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/features"
	"k8s.io/client-go/rest"
	"operetta.dev/engine/cluster/cbor"
)

// AcceptsCBOR is the variable of client-go that says whether its clients accept CBOR.
const AcceptsCBOR = "KUBE_FEATURE_" + string(features.ClientsAllowCBOR)

// AcceptCBOR returns a configuration whose clients of objects without Go types accept answers in CBOR as well as in JSON, unless AcceptsCBOR is set to
// something else. An API server that does not offer CBOR answers in JSON, and what is sent stays JSON, which each of them takes.
//
// It is client-go's own feature, which is switched on for the whole process. What its decoders make of CBOR is what they make of JSON then.
func AcceptCBOR(config *rest.Config) *rest.Config {
	if gates, can := features.FeatureGates().(interface {
		Set(of features.Feature, on bool) error
	}); can && os.Getenv(AcceptsCBOR) == "" {
		_ = gates.Set(features.ClientsAllowCBOR, true) // it errors for a feature that is not one any more
	}
	out := rest.CopyConfig(config)
	refused := &sync.Map{}
	out.Wrap(func(inner http.RoundTripper) http.RoundTripper { return acceptsCBOR{inner, refused} })
	return out
}

// readsCBORKey is the key of ReadsCBOR.
type readsCBORKey struct{}

// ReadsCBOR returns a context for requests whose caller reads an answer in CBOR by itself.
func ReadsCBOR(ctx context.Context) context.Context {
	return context.WithValue(ctx, readsCBORKey{}, true)
}

// acceptsCBOR sends requests that may be answered in CBOR.
type acceptsCBOR struct {
	http.RoundTripper

	// refused are the APIs that have refused a request because of it, or answered with what is no CBOR. There may be servers behind the API
	// server, and proxies before it, that know nothing of it. No operator may be of no use because of them.
	refused *sync.Map
}

// WrappedRoundTripper implements net.RoundTripperWrapper.
func (a acceptsCBOR) WrappedRoundTripper() http.RoundTripper { return a.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (a acceptsCBOR) RoundTrip(r *http.Request) (*http.Response, error) {
	if !strings.Contains(r.Header.Get("Accept"), runtime.ContentTypeCBOR) {
		return a.RoundTripper.RoundTrip(r)
	}
	api := apiOf(r.URL.Path)
	_, refused := a.refused.Load(api)
	own := r.Context().Value(readsCBORKey{}) != nil
	if refused || !own && r.URL.Query().Get("watch") != "" { // other watches are few, and their events would have to be changed as they come
		return a.RoundTripper.RoundTrip(inJSON(r, r.Body))
	}
	answer, err := a.RoundTripper.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	refused = answer.StatusCode == http.StatusNotAcceptable || answer.StatusCode == http.StatusUnsupportedMediaType
	if media, _, _ := mime.ParseMediaType(answer.Header.Get("Content-Type")); !own && media == runtime.ContentTypeCBOR {
		refused = !likeJSON(answer) && r.Method == http.MethodGet || refused
	}
	if !refused {
		return answer, nil
	}
	a.refused.Store(api, true)
	body, again := bodyAgain(r)
	if !again {
		return answer, nil
	}
	_ = answer.Body.Close()
	return a.RoundTripper.RoundTrip(inJSON(r, body))
}

// inJSON returns a request with a body whose answer is JSON.
func inJSON(r *http.Request, body io.ReadCloser) *http.Request {
	out := r.Clone(r.Context())
	out.Header.Set("Accept", runtime.ContentTypeJSON)
	out.Body = body
	return out
}

// bodyAgain returns the body of a request that was sent, to send it again. It returns false if that is not possible.
func bodyAgain(r *http.Request) (io.ReadCloser, bool) {
	if r.Body == nil || r.Body == http.NoBody {
		return r.Body, true
	}
	if r.GetBody == nil {
		return nil, false
	}
	body, err := r.GetBody()
	return body, err == nil
}

// apiOf returns the API that a path is of: its group and version.
func apiOf(path string) string {
	_, of, _ := strings.Cut(path, "/apis/")
	parts := strings.SplitN(of, "/", 3)
	return strings.Join(parts[:min(len(parts), 2)], "/")
}

// likeJSON changes an answer in CBOR to what decoders make the same of as of JSON. It returns false if the answer is no CBOR. If the
// answer breaks off, reading its body returns that error.
func likeJSON(answer *http.Response) bool {
	raw, err := io.ReadAll(answer.Body)
	changed, ok := cbor.LikeJSON(raw)
	if err == nil && ok {
		raw = changed
	}
	answer.Body = readCloser{io.MultiReader(bytes.NewReader(raw), brokenOff{err}), answer.Body}
	answer.ContentLength = -1
	answer.Header.Del("Content-Length")
	return err != nil || ok
}

type readCloser struct {
	io.Reader
	io.Closer
}

// brokenOff is what follows what was read before an error.
type brokenOff struct{ err error }

// Read implements io.Reader.
func (b brokenOff) Read([]byte) (int, error) { return 0, cmp.Or(b.err, io.EOF) }
