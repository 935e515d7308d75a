package controlplane

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

const pollInterval = 50 * time.Millisecond

// client speaks to the servers of one control plane as controlPlaneUser.
type client struct {
	http   *http.Client
	server string
}

func newClient(server string, config *tls.Config) *client {
	return &client{
		server: server,
		http: &http.Client{
			Timeout:   5 * time.Second,
			Transport: &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true},
		},
	}
}

// do sends a request and returns the status code and body of the response. The url is absolute, or a
// path of the API server.
func (c *client) do(ctx context.Context, method, url, body string) (int, []byte, error) {
	if strings.HasPrefix(url, "/") {
		url = c.server + url
	}
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("User-Agent", controlPlaneUser)
	resp, err := c.http.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	content, err := io.ReadAll(resp.Body)
	return resp.StatusCode, content, err
}

// get reads a path into v; anything but 200 is an error.
func (c *client) get(ctx context.Context, url string, v any) error {
	code, content, err := c.do(ctx, http.MethodGet, url, "")
	if err != nil {
		return err
	}
	if code != http.StatusOK {
		return fmt.Errorf("GET %s: status %d: %s", url, code, firstLine(content))
	}
	if v == nil {
		return nil
	}
	return json.Unmarshal(content, v)
}

// healthy returns nil if a health URL answers with 200.
func (c *client) healthy(ctx context.Context, url string) error { return c.get(ctx, url, nil) }

// createNode makes the simulated node with a number.
func (c *client) createNode(ctx context.Context, n int) error {
	code, content, err := c.do(ctx, http.MethodPost, "/api/v1/nodes", node(n))
	if err != nil {
		return err
	}
	if code != http.StatusCreated && code != http.StatusConflict {
		return fmt.Errorf("create node-%d: status %d: %s", n, code, firstLine(content))
	}
	return nil
}

// releaseNodes deletes the leases of the nodes. Each run of kwok has a name of its
// own, and would leave nodes alone until the leases of the last run expire.
func (c *client) releaseNodes(ctx context.Context) error {
	const leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
	code, content, err := c.do(ctx, http.MethodDelete, leases, "")
	if err == nil && code != http.StatusOK {
		err = fmt.Errorf("DELETE %s: status %d: %s", leases, code, firstLine(content))
	}
	return err
}

// usable returns nil if pods can be created in the default namespace and scheduled on every node.
func (c *client) usable(ctx context.Context, nodes int) error {
	if err := c.get(ctx, "/api/v1/namespaces/default/serviceaccounts/default", nil); err != nil {
		return err
	}
	var list struct {
		Items []struct {
			Metadata struct{ Name string }
			Spec     struct{ Taints []struct{ Key string } }
			Status   struct {
				Conditions []struct{ Type, Status string }
			}
		}
	}
	if err := c.get(ctx, "/api/v1/nodes", &list); err != nil {
		return err
	}
	ready := 0
	for _, n := range list.Items {
		for _, condition := range n.Status.Conditions {
			if condition.Type == "Ready" && condition.Status == "True" && len(n.Spec.Taints) == 0 {
				ready++
			}
		}
	}
	if ready < nodes {
		return fmt.Errorf("%d of %d nodes are ready and untainted", ready, nodes)
	}
	return nil
}

func firstLine(b []byte) string {
	line, _, _ := strings.Cut(strings.TrimSpace(string(b)), "\n")
	return line
}

// poll calls check until it returns nil. When the context ends, it returns the last error of check.
func poll(ctx context.Context, what string, check func(context.Context) error) error {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	var last error
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() == nil || last == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w", what, errors.Join(context.Cause(ctx), last))
		case <-tick.C:
		}
	}
}
