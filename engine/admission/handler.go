package admission

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/semaphore"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// The paths of the webhooks: those for the custom resources of all packages, and the one for Patches.
const (
	ValidatePath = "/validate"
	MutatePath   = "/mutate"
	PatchesPath  = "/validate-patches"
)

// A Reviewer answers a request. It errors if it cannot decide whether the request is valid.
type Reviewer func(context.Context, *admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse, error)

const (
	// maxReview is how many bytes a review has at most: two objects of 3 MiB each, which is what an API
	// server accepts, and what is around them.
	maxReview = 8 << 20
	// maxReviewBytes is how many bytes of reviews a Handler has in memory at once.
	maxReviewBytes = 4 * maxReview
)

// A Handler answers the reviews that API servers send to one path. What it cannot answer gets the
// status code of an error, so that the API server does what the failure policy of its configuration says.
type Handler struct {
	review Reviewer
	log    logr.Logger
	// memory has the bytes of the reviews that are in memory.
	memory *semaphore.Weighted
}

// NewHandler returns a handler of a reviewer.
func NewHandler(review Reviewer, log logr.Logger) *Handler {
	return &Handler{review, log, semaphore.NewWeighted(maxReviewBytes)}
}

// ServeHTTP answers a review.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), timeoutOf(r))
	defer cancel()
	body := &body{from: http.MaxBytesReader(w, r.Body, maxReview), memory: h.memory}
	defer body.release()
	end := limitReading(w)
	request, err := readReview(r, body)
	end()
	if err != nil {
		http.Error(w, err.Error(), err.code)
		return
	}
	response, failure := h.answer(ctx, request)
	if failure != nil {
		h.log.V(1).Info("a request was not reviewed", "kind", request.Kind.Kind, "resource", types.NamespacedName{Namespace: request.Namespace, Name: request.Name}.String(), "reason", failure.Error())
		http.Error(w, failure.Error(), http.StatusServiceUnavailable)
		return
	}
	response.UID = request.UID
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(admissionv1.AdmissionReview{ // who asked is gone if it fails
		TypeMeta: metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "AdmissionReview"}, Response: response,
	})
}

// limitReading limits how long the body of a request may take to arrive, until end is called. Any client that can
// connect can send a body slowly, or never finish it. Until then, the request occupies the memory of what has
// arrived, and no turn.
func limitReading(w http.ResponseWriter) (end func()) {
	deadline := http.NewResponseController(w)
	_ = deadline.SetReadDeadline(time.Now().Add(readTime)) // a connection that has none has another end
	return func() { _ = deadline.SetReadDeadline(time.Time{}) }
}

// answer returns the answer to a request. A panic is an error.
func (h *Handler) answer(ctx context.Context, r *admissionv1.AdmissionRequest) (out *admissionv1.AdmissionResponse, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			// The value is not logged: it may have a Secret in it.
			h.log.Error(nil, "a review panicked", "panic", fmt.Sprintf("%T", cause), "stack", string(debug.Stack()))
			out, err = nil, errors.New("the review failed for a reason of its own")
		}
	}()
	return h.review(ctx, r)
}

// timeoutOf returns how long the answer may take: the API server says how long it waits.
func timeoutOf(r *http.Request) time.Duration {
	timeout, err := time.ParseDuration(r.URL.Query().Get("timeout"))
	if err != nil || timeout <= 0 {
		timeout = defaultTimeout
	}
	return max(min(timeout, maxTimeout)-answerTime, answerTime)
}

// A requestError says why a request is no review.
type requestError struct {
	code int
	text string
}

// Error says why.
func (e *requestError) Error() string { return e.text }

func requestErrorf(code int, format string, args ...any) *requestError {
	return &requestError{code, fmt.Sprintf(format, args...)}
}

// errMemory is the error of a body for which there is no memory.
var errMemory = errors.New("too many requests are being reviewed")

// A body is the body of a request. It takes memory from the Handler as the text arrives, and errors with errMemory if
// none is left: if it waited instead, it would keep the memory that it already has.
type body struct {
	from   io.Reader
	memory *semaphore.Weighted
	taken  int64
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.from.Read(p)
	if !b.memory.TryAcquire(int64(n)) {
		return 0, errMemory
	}
	b.taken += int64(n)
	return n, err
}

// release returns the memory.
func (b *body) release() { b.memory.Release(b.taken) }

// readReview returns the request of a review. The error is nil if it is one.
func readReview(r *http.Request, body io.Reader) (*admissionv1.AdmissionRequest, *requestError) {
	text, failure := readBody(r, body, maxReview)
	if failure != nil {
		return nil, failure
	}
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(text, &review); err != nil {
		return nil, requestErrorf(http.StatusBadRequest, "the review is not JSON of an AdmissionReview")
	}
	if got, want := review.APIVersion, admissionv1.SchemeGroupVersion.String(); got != want || review.Kind != "AdmissionReview" {
		return nil, requestErrorf(http.StatusBadRequest, "the review is not an AdmissionReview of %s", want)
	}
	if review.Request == nil || review.Request.UID == "" {
		return nil, requestErrorf(http.StatusBadRequest, "the review has no request with a uid")
	}
	return review.Request, nil
}

// readBody returns the text of a review, which has at most so many bytes. The error is nil if there is one.
func readBody(r *http.Request, body io.Reader, most int) ([]byte, *requestError) {
	if r.Method != http.MethodPost {
		return nil, requestErrorf(http.StatusMethodNotAllowed, "reviews are posted")
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return nil, requestErrorf(http.StatusUnsupportedMediaType, "a review is application/json")
	}
	text, err := io.ReadAll(body)
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return nil, requestErrorf(http.StatusRequestEntityTooLarge, "a review has at most %d bytes", most)
	}
	switch {
	case errors.Is(err, errMemory):
		return nil, requestErrorf(http.StatusServiceUnavailable, "%v", err)
	case err != nil:
		return nil, requestErrorf(http.StatusBadRequest, "reading the review: %v", err)
	}
	return text, nil
}
