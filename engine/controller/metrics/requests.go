package metrics

import (
	"net/http"
	"strconv"
	"strings"

	"operetta.dev/engine/history"
)

// Requests returns a round tripper that counts the requests to an API server.
func (m *Metrics) Requests(next http.RoundTripper) http.RoundTripper {
	return countingTransport{next, m}
}

// A countingTransport counts requests.
type countingTransport struct {
	http.RoundTripper

	metrics *Metrics
}

// RoundTrip implements http.RoundTripper.
func (t countingTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.RoundTripper.RoundTrip(req)
	code := "error"
	if err == nil {
		code = strconv.Itoa(resp.StatusCode)
	}
	r := RequestOf(req)
	history.CountRequest(req.Context(), r.Verb, r.Resource)
	t.metrics.requests.WithLabelValues(r.Verb, r.Resource, code).Inc()
	return resp, err
}

// WrappedRoundTripper implements net.RoundTripperWrapper.
func (t countingTransport) WrappedRoundTripper() http.RoundTripper { return t.RoundTripper }

// A Request says what a request to an API server does.
type Request struct {
	// Verb is as in a Role, and apply for a server-side apply.
	Verb string
	// Resource is the plural name of a kind with its group and subresource, such as deployments.apps/status. It is
	// "" for what is about no kind, such as discovery.
	Resource string
	// Namespace and Name identify an object; a list has no name.
	Namespace, Name string
}

// RequestOf returns what a request does. Its path may have a prefix, as that of a proxy.
func RequestOf(req *http.Request) Request {
	parts := strings.Split(strings.Trim(req.URL.Path, "/"), "/")
	group := ""
	switch i := rootOf(parts); {
	case i < 0:
		return Request{Verb: strings.ToLower(req.Method)}
	case parts[i] == "apis":
		group, parts = "."+parts[i+1], parts[i+3:]
	default:
		parts = parts[i+2:]
	}
	out := Request{}
	if len(parts) > 2 && parts[0] == "namespaces" {
		out.Namespace, parts = parts[1], parts[2:]
	}
	out.Resource = parts[0] + group
	if len(parts) > 1 {
		out.Name = parts[1]
	}
	if len(parts) > 2 {
		out.Resource += "/" + parts[2]
	}
	out.Verb = verbOf(req, out.Name != "")
	return out
}

// rootOf returns where the part of a path begins that names a resource: at api, followed by a version and a
// resource, or at apis, followed by a group as well. It returns -1 for other paths.
func rootOf(parts []string) int {
	for i, p := range parts {
		if left := len(parts) - i; p == "api" && left > 2 || p == "apis" && left > 3 {
			return i
		}
	}
	return -1
}

// applyPatch begins the content types of server-side applies.
const applyPatch = "application/apply-patch"

// verbOf returns the verb of a request, for one object or for all of a kind.
func verbOf(req *http.Request, one bool) string {
	switch req.Method {
	case http.MethodGet:
		switch {
		case req.URL.Query().Get("watch") != "":
			return "watch"
		case one:
			return "get"
		}
		return "list"
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		if strings.HasPrefix(req.Header.Get("Content-Type"), applyPatch) {
			return "apply"
		}
		return "patch"
	case http.MethodDelete:
		if !one {
			return "deletecollection"
		}
		return "delete"
	}
	return strings.ToLower(req.Method)
}
