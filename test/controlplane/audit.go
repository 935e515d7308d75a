package controlplane

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"time"
)

const (
	auditPolicyFile = "audit-policy.json"
	auditLogFile    = "audit.log"
)

// auditPolicy logs exactly one line for each request. A request that stays open, such as a watch, is
// logged when its response begins, because it may never end; any other when it is answered.
const auditPolicy = `{
  "apiVersion": "audit.k8s.io/v1",
  "kind": "Policy",
  "omitStages": ["RequestReceived"],
  "rules": [
    {"level": "Metadata", "verbs": ["watch", "proxy"], "omitStages": ["ResponseComplete"]},
    {"level": "Metadata", "omitStages": ["ResponseComplete"], "resources": [{"group": "", "resources": [
      "pods/attach", "pods/exec", "pods/log", "pods/portforward", "pods/proxy", "services/proxy", "nodes/proxy"
    ]}]},
    {"level": "Metadata"}
  ]
}
`

// AuditEvent is one request, as the API server recorded it.
type AuditEvent struct {
	// AuditID identifies the request.
	AuditID string
	// Time is when the request arrived.
	Time time.Time
	// User made the request, with the program that UserAgent names.
	User, UserAgent string
	// As is the user as whom it was made, by impersonation, or "".
	As string
	// Verb is that of Kubernetes, such as list or patch; for requests that are not
	// about a resource, that of HTTP in lower case.
	Verb string
	// Group, Resource, Subresource, Namespace and Name say what it is about. All
	// are empty when it is not about a resource; the core group is empty too.
	Group, Resource, Subresource, Namespace, Name string
	// RequestURI is the path and query as sent.
	RequestURI string
	// Code is the HTTP status of the answer, and Message says why a request failed.
	Code    int
	Message string
	// Forbidden says that no role allows the request, unlike an answer 403 of admission.
	Forbidden bool
}

// AuditMark is a point in the audit log. The zero mark is its beginning.
type AuditMark int64

// errNoAudit is returned if the control plane was started without an audit log.
var errNoAudit = errors.New("the audit log is off; start the control plane with Options.Audit")

// AuditLog is the path of the audit log: a JSON object of kind Event per line and request.
func (c *ControlPlane) AuditLog() string { return c.layout.file(auditLogFile) }

// MarkAudit returns the point that the audit log has reached. All requests that
// were answered before the call are before the mark.
func (c *ControlPlane) MarkAudit(ctx context.Context) (AuditMark, error) {
	mark, err := c.syncAudit(ctx)
	if err != nil {
		return 0, fmt.Errorf("mark audit log: %w", err)
	}
	return mark, nil
}

// AuditEvents returns the requests after a mark in the order in which they were
// answered, with all that were answered before the call; of the given users, or
// of everyone but this package if none is given.
func (c *ControlPlane) AuditEvents(ctx context.Context, since AuditMark, users ...string) ([]AuditEvent, error) {
	if _, err := c.syncAudit(ctx); err != nil {
		return nil, fmt.Errorf("read audit log: %w", err)
	}
	log, err := readFrom(c.AuditLog(), int64(since))
	if err != nil {
		return nil, fmt.Errorf("read audit log: %w", err)
	}
	names, err := jsonStrings(users)
	if err != nil {
		return nil, fmt.Errorf("read audit log: %w", err)
	}
	var events []AuditEvent
	for line := range bytes.Lines(log) {
		if !bytes.HasSuffix(line, []byte("\n")) {
			break // it is being written
		}
		// Most lines are those of other users, and to parse one costs a hundred times as much.
		if len(users) > 0 && !slices.ContainsFunc(names, func(name []byte) bool { return bytes.Contains(line, name) }) {
			continue
		}
		e, err := parseAuditEvent(line)
		if err != nil {
			return nil, fmt.Errorf("read audit log: %w", err)
		}
		if e.User == controlPlaneUser || len(users) > 0 && !slices.Contains(users, e.User) {
			continue
		}
		events = append(events, e)
	}
	return events, nil
}

// syncAudit waits until the log has all requests that were answered before, and returns its end. A line is
// written a moment after the response is sent, so syncAudit sends a request with a unique name and waits
// for its line.
func (c *ControlPlane) syncAudit(ctx context.Context) (AuditMark, error) {
	if c.external != "" {
		return 0, ErrExternal
	}
	if !c.layout.options.Audit {
		return 0, errNoAudit
	}
	c.mu.Lock()
	_, up := c.running[APIServer]
	c.marks++
	own := fmt.Sprintf("/version?audit-mark=%d", c.marks)
	c.mu.Unlock()
	info, err := os.Stat(c.AuditLog())
	if err != nil {
		return 0, err
	}
	before := info.Size()
	if !up {
		return AuditMark(before), nil // a server that is gone has written all it would
	}
	if _, _, err := c.client.do(ctx, http.MethodGet, own, ""); err != nil {
		return 0, err
	}
	var mark AuditMark
	err = c.wait(ctx, "the audit log", func(context.Context) error {
		log, err := readFrom(c.AuditLog(), before)
		if err != nil {
			return err
		}
		at := bytes.Index(log, []byte(`"`+own+`"`))
		if at < 0 || !bytes.Contains(log[at:], []byte("\n")) {
			return errors.New("the last request is not in it yet")
		}
		mark = AuditMark(before + int64(at+bytes.IndexByte(log[at:], '\n')+1))
		return nil
	})
	return mark, err
}

// jsonStrings returns names as JSON strings.
func jsonStrings(names []string) ([][]byte, error) {
	var out [][]byte
	for _, name := range names {
		text, err := json.Marshal(name)
		if err != nil {
			return nil, err
		}
		out = append(out, text)
	}
	return out, nil
}

func readFrom(path string, offset int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if _, err := f.Seek(offset, io.SeekStart); err != nil {
		return nil, err
	}
	return io.ReadAll(f)
}

func parseAuditEvent(line []byte) (AuditEvent, error) {
	var e struct {
		AuditID                  string
		RequestReceivedTimestamp time.Time
		User, ImpersonatedUser   struct{ Username string }
		UserAgent, Verb          string
		RequestURI               string
		ObjectRef                struct{ APIGroup, Resource, Subresource, Namespace, Name string }
		ResponseStatus           struct {
			Code    int
			Message string
		}
		Annotations map[string]string
	}
	if err := json.Unmarshal(line, &e); err != nil {
		return AuditEvent{}, fmt.Errorf("parse audit event: %w", err)
	}
	return AuditEvent{
		AuditID: e.AuditID, Time: e.RequestReceivedTimestamp,
		User: e.User.Username, As: e.ImpersonatedUser.Username, UserAgent: e.UserAgent, Verb: e.Verb,
		Group: e.ObjectRef.APIGroup, Resource: e.ObjectRef.Resource, Subresource: e.ObjectRef.Subresource,
		Namespace: e.ObjectRef.Namespace, Name: e.ObjectRef.Name,
		RequestURI: e.RequestURI, Code: e.ResponseStatus.Code, Message: e.ResponseStatus.Message,
		Forbidden: e.Annotations["authorization.k8s.io/decision"] == "forbid",
	}, nil
}
