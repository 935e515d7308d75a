package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"operetta.dev/engine/controller"
	"operetta.dev/engine/explain"
	"operetta.dev/engine/history"
	"operetta.dev/engine/object"
	"operetta.dev/engine/registry"
)

// operatorFlags say how the operator of a resource is asked.
type operatorFlags struct {
	address, ca      string
	namespace, lease string
}

func (f *operatorFlags) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.namespace, "operator-namespace", "", "namespace of the operator, such as operetta-system: the leader's pod is asked what triggered the last reconciles, through the API server")
	flags.StringVar(&f.lease, "operator-lease", controller.DefaultLeaderElectionID, "name of the Lease in that namespace that says which pod leads")
	flags.StringVar(&f.address, "operator-address", "", "address of an operator's metrics that is asked instead, such as 127.0.0.1:8080")
	flags.StringVar(&f.ca, "operator-ca", "", "file with the certificate authority of that address; it must be known unless the address is on this machine")
}

// check errors if the flags contradict each other.
func (f operatorFlags) check() error {
	if f.address == "" {
		return nil
	}
	if f.namespace != "" {
		return usageError{errors.New("--operator-address and --operator-namespace: the operator is at one place")}
	}
	if _, _, err := net.SplitHostPort(f.address); err != nil {
		return usageError{fmt.Errorf("--operator-address: %q is not HOST:PORT, such as 127.0.0.1:8080", f.address)}
	}
	return nil
}

// operator returns the operator that the flags name. It is asked with the credentials of the user, so nobody is asked who
// was not named.
func (f operatorFlags) operator(on target) explain.Operator {
	if f.address == "" && f.namespace == "" {
		return unnamedOperator{}
	}
	return &operatorClient{flags: f, on: on}
}

// An unnamedOperator is the operator that the user has not named.
type unnamedOperator struct{}

// Reconciles implements explain.Operator.
func (unnamedOperator) Reconciles(context.Context, object.Ref) (history.Report, error) {
	return history.Report{}, errors.New("only the operator knows what triggered them; name it with --operator-namespace operetta-system, or with --operator-address")
}

// An operatorClient asks an operator. It is safe for concurrent use.
type operatorClient struct {
	flags operatorFlags
	on    target

	mu sync.Mutex
	// client and address are there once a way to the operator is known. A tunnel that has ended is dug again.
	client  *http.Client
	address string
	tunnel  *tunnel
}

// maxReport is how much of an answer is read.
const maxReport = 4 << 20

// Reconciles implements explain.Operator.
func (c *operatorClient) Reconciles(ctx context.Context, ref object.Ref) (history.Report, error) {
	ctx, cancel := context.WithTimeout(ctx, operatorTimeout)
	defer cancel()
	client, address, err := c.connect(ctx)
	if err != nil {
		return history.Report{}, err
	}
	at := url.URL{Scheme: "https", Host: address, Path: history.Path, RawQuery: url.Values{
		"group": {ref.Group}, "kind": {ref.Kind}, "namespace": {ref.Namespace}, "name": {ref.Name},
	}.Encode()}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return history.Report{}, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return history.Report{}, fmt.Errorf("%s does not answer: %w", c.name(), withoutURL(err))
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxReport))
	if err != nil {
		return history.Report{}, fmt.Errorf("%s does not answer: %w", c.name(), err)
	}
	if resp.StatusCode != http.StatusOK {
		return history.Report{}, c.refusal(resp, body)
	}
	var out history.Report
	if err := json.Unmarshal(body, &out); err != nil {
		return history.Report{}, fmt.Errorf("%s: its answer is no report: %w", c.name(), err)
	}
	return out, nil
}

// refusal says why an operator does not answer a question.
func (c *operatorClient) refusal(resp *http.Response, body []byte) error {
	const maxText = 400
	why := strings.TrimSpace(string(body[:min(len(body), maxText)]))
	if resp.StatusCode == http.StatusNotFound && !strings.HasPrefix(resp.Header.Get("Cache-Control"), "no-store") {
		why = "it is no operator that serves " + history.Path
	}
	return fmt.Errorf("%s answers %d: %s", c.name(), resp.StatusCode, why)
}

// name names the operator in messages.
func (c *operatorClient) name() string {
	if c.flags.address != "" {
		return "the operator at " + c.flags.address
	}
	return "the operator in namespace " + c.flags.namespace
}

// connect returns a client and the address at which it reaches the operator.
func (c *operatorClient) connect(ctx context.Context) (*http.Client, string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.client != nil && (c.tunnel == nil || isOpen(c.tunnel.end)) {
		return c.client, c.address, nil
	}
	address, trust := c.flags.address, rest.TLSClientConfig{CAFile: c.flags.ca}
	if address == "" {
		dug, err := openTunnel(ctx, c.on, c.flags)
		if err != nil {
			return nil, "", fmt.Errorf("%s: %w", c.name(), err)
		}
		c.tunnel, address = dug, dug.address
		trust = rest.TLSClientConfig{Insecure: true} // the API server has connected us with the pod
	} else if host, _, err := net.SplitHostPort(address); err == nil && c.flags.ca == "" && registry.IsLoopback(host) {
		trust.Insecure = true // nobody is between
	}
	client, err := clientAs(c.on.config, trust)
	if err != nil {
		return nil, "", err
	}
	c.client, c.address = client, address
	return client, address, nil
}

// clientAs returns a client that says who it is as the client of a cluster does, to whom it trusts by TLS. It errors for a
// user who acts as another one, which only an API server understands.
func clientAs(config *rest.Config, trust rest.TLSClientConfig) (*http.Client, error) {
	if config.Impersonate.UserName != "" {
		return nil, errors.New("the operator cannot be asked as another user: leave out the impersonation")
	}
	out := rest.CopyConfig(config)
	trust.CertData, trust.CertFile, trust.KeyData, trust.KeyFile = config.CertData, config.CertFile, config.KeyData, config.KeyFile
	out.TLSClientConfig, out.Proxy = trust, nil
	client, err := rest.HTTPClientFor(out)
	if err != nil {
		return nil, err
	}
	// The credentials would be sent to wherever an answer points.
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return client, nil
}

// withoutURL returns why a request failed, without its address.
func withoutURL(err error) error {
	if of, ok := errors.AsType[*url.Error](err); ok {
		return of.Err
	}
	return err
}
