package admission

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"strings"

	"github.com/go-logr/logr"
	"golang.org/x/sync/semaphore"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/cache"

	"operetta.dev/engine/program"
)

// ConvertPath is the path of the webhook that converts the custom resources of all packages.
const ConvertPath = "/convert"

const (
	// maxConversion is how many bytes a review of conversions has at most. An API server sends one resource at a
	// time in most cases, and a page of a list in some.
	maxConversion = 16 << 20
	// maxConversionBytes is how many bytes of such reviews are in memory at once.
	maxConversionBytes = 4 * maxConversion
	// maxConverted is how many resources a review has at most.
	maxConverted = 10_000
	// maxExpensive is how many conversions are remembered that were too expensive.
	maxExpensive = 1_000
)

// A Converter is a package that converts specs between its versions.
type Converter interface {
	// Digest is that of the files of the package.
	Digest() string
	// ConvertContext returns what Conversions.ConvertResource returns. It ends before the context does.
	ConvertContext(ctx context.Context, c program.Conversion) (map[string]any, error)
}

// Conversions answers the reviews in which an API server asks for custom resources in another version. It converts
// their specs, and keeps everything else. It is safe for concurrent use.
type Conversions struct {
	packages func(schema.GroupKind) Converter
	shares   *shares
	log      logr.Logger
	memory   *semaphore.Weighted
	// expensive has the errors of conversions that were too expensive, by the digest of all that they depend on:
	// an API server asks again and again, and each time costs a worker.
	expensive *cache.LRUExpireCache
}

// NewConversions returns a handler that converts the resources of packages, with at most concurrency reviews at a
// time. packages returns the package of a kind, or nil.
func NewConversions(packages func(schema.GroupKind) Converter, concurrency int, log logr.Logger) *Conversions {
	return &Conversions{packages, newShares(concurrency), log, semaphore.NewWeighted(maxConversionBytes), cache.NewLRUExpireCache(maxExpensive)}
}

// ServeHTTP answers a review. A review that cannot be answered gets the status code of an error. If one resource
// cannot be converted, the whole review fails with a message that names it, because an API server accepts a review
// completely or not at all.
func (c *Conversions) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), timeoutOf(r))
	defer cancel()
	body := &body{from: http.MaxBytesReader(w, r.Body, maxConversion), memory: c.memory}
	defer body.release()
	end := limitReading(w)
	request, failure := readConversion(r, body)
	end()
	if failure != nil {
		http.Error(w, failure.Error(), failure.code)
		return
	}
	response := &apiextensionsv1.ConversionResponse{UID: request.UID, Result: metav1.Status{Status: metav1.StatusSuccess}}
	converted, err := c.convertAll(ctx, request, body.taken)
	if refused, is := errors.AsType[*unconvertedError](err); is {
		c.log.V(1).Info("a resource was not converted", "kind", refused.kind.String(), "resource", refused.name, "to", request.DesiredAPIVersion, "reason", refused.err.Error())
		response.Result = metav1.Status{Status: metav1.StatusFailure, Message: err.Error(), Reason: metav1.StatusReasonInvalid}
	} else if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	response.ConvertedObjects = converted
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(apiextensionsv1.ConversionReview{ // who asked is gone if it fails
		TypeMeta: metav1.TypeMeta{APIVersion: apiextensionsv1.SchemeGroupVersion.String(), Kind: "ConversionReview"}, Response: response,
	})
}

// readConversion returns the request of a review. The error is nil if it is one.
func readConversion(r *http.Request, body *body) (*apiextensionsv1.ConversionRequest, *requestError) {
	text, failure := readBody(r, body, maxConversion)
	if failure != nil {
		return nil, failure
	}
	var review apiextensionsv1.ConversionReview
	if err := json.Unmarshal(text, &review); err != nil {
		return nil, requestErrorf(http.StatusBadRequest, "the review is not JSON of a ConversionReview")
	}
	if got, want := review.APIVersion, apiextensionsv1.SchemeGroupVersion.String(); got != want || review.Kind != "ConversionReview" {
		return nil, requestErrorf(http.StatusBadRequest, "the review is not a ConversionReview of %s", want)
	}
	if review.Request == nil || review.Request.UID == "" {
		return nil, requestErrorf(http.StatusBadRequest, "the review has no request with a uid")
	}
	if n := len(review.Request.Objects); n > maxConverted {
		return nil, requestErrorf(http.StatusRequestEntityTooLarge, "a review has at most %d resources, and this one has %d", maxConverted, n)
	}
	return review.Request, nil
}

// An unconvertedError says that one resource cannot be converted, however often somebody asks.
type unconvertedError struct {
	kind schema.GroupVersionKind
	name string
	err  error
}

// Error names the resource, as far as it is known.
func (e *unconvertedError) Error() string {
	var words []string
	for _, w := range []string{e.kind.Kind, e.name} {
		if w != "" {
			words = append(words, w)
		}
	}
	if e.kind.Version != "" {
		words = append(words, "of version "+e.kind.Version)
	}
	if len(words) == 0 {
		return e.err.Error()
	}
	return fmt.Sprintf("%s: %v", strings.Join(words, " "), e.err)
}

// Unwrap returns the cause.
func (e *unconvertedError) Unwrap() error { return e.err }

// convertAll returns the resources of a request in the version that it asks for. A panic is an error.
func (c *Conversions) convertAll(ctx context.Context, r *apiextensionsv1.ConversionRequest, size int64) (out []runtime.RawExtension, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			// The value is not logged: it may have a Secret in it.
			c.log.Error(nil, "a conversion panicked", "panic", fmt.Sprintf("%T", cause), "stack", string(debug.Stack()))
			out, err = nil, errors.New("the conversion failed for a reason of its own")
		}
	}()
	wanted, err := schema.ParseGroupVersion(r.DesiredAPIVersion)
	if err != nil {
		return nil, &unconvertedError{err: errors.New("the desired version is not a group and a version")}
	}
	turn, err := c.shares.takeTurn(ctx, namespaceOf(r.Objects), size)
	if err != nil {
		return nil, err
	}
	defer c.shares.leave(turn)
	out = make([]runtime.RawExtension, len(r.Objects))
	for i, raw := range r.Objects {
		// A list of thousands takes many seconds, which nobody else has to wait for.
		if err := c.shares.pass(ctx, turn); err != nil {
			return nil, err
		}
		resource := &unstructured.Unstructured{}
		if err := resource.UnmarshalJSON(raw.Raw); err != nil {
			return nil, &unconvertedError{name: fmt.Sprintf("number %d", i), err: errors.New("it is not JSON of a resource")}
		}
		if err := c.convert(ctx, resource, wanted); err != nil {
			return nil, err
		}
		out[i].Object = resource
	}
	return out, nil
}

// namespaceOf returns the namespace that all resources are in, or "". It decodes no more than that.
func namespaceOf(objects []runtime.RawExtension) string {
	out := ""
	for i, o := range objects {
		var head metav1.PartialObjectMetadata
		if json.Unmarshal(o.Raw, &head) != nil || i > 0 && head.Namespace != out {
			return ""
		}
		out = head.Namespace
	}
	return out
}

// convert gives a resource the wanted version. It errors with an unconvertedError if that is impossible, and
// otherwise if nobody knows.
func (c *Conversions) convert(ctx context.Context, resource *unstructured.Unstructured, wanted schema.GroupVersion) error {
	kind := resource.GroupVersionKind()
	name := resource.GetName()
	if resource.GetNamespace() != "" {
		name = resource.GetNamespace() + "/" + name
	}
	if kind.GroupVersion() == wanted {
		return nil
	}
	if kind.Group != wanted.Group {
		return &unconvertedError{kind, name, fmt.Errorf("it cannot become one of group %q", wanted.Group)}
	}
	by := c.packages(kind.GroupKind())
	if by == nil {
		return fmt.Errorf("no package serves %s here", kind.GroupKind())
	}
	spec, err := c.converted(ctx, by, program.Conversion{
		Namespace: resource.GetNamespace(), Name: resource.GetName(), From: kind.Version, To: wanted.Version, Spec: resource.Object["spec"],
	})
	if _, unavailable := errors.AsType[*program.UnavailableError](err); unavailable || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return fmt.Errorf("%s %s: %w", kind.Kind, name, err)
	}
	if err != nil {
		return &unconvertedError{kind, name, fmt.Errorf("to version %s: %w", wanted.Version, err)}
	}
	resource.Object["spec"] = spec
	resource.SetAPIVersion(wanted.String())
	return nil
}

// converted returns a converted spec. It remembers which ones were too expensive.
func (c *Conversions) converted(ctx context.Context, by Converter, of program.Conversion) (map[string]any, error) {
	text, err := json.Marshal([]any{by.Digest(), of.From, of.To, of.Spec})
	if err != nil {
		return nil, err
	}
	key := sha256.Sum256(text)
	if known, was := c.expensive.Get(key); was {
		known, _ := known.(error)
		return nil, known
	}
	out, err := by.ConvertContext(ctx, of)
	if limit, over := errors.AsType[*program.LimitError](err); over {
		c.expensive.Add(key, limit, expensiveTime)
	}
	return out, err
}
