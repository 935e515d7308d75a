package registry

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"cuelang.org/go/mod/modcache"
	"cuelang.org/go/mod/modconfig"
	"cuelang.org/go/mod/modregistry"
	"cuelang.org/go/mod/module"
)

// Options are how registries are reached. The zero value is what the cue command does.
type Options struct {
	// Env has the settings that the cue command reads from its environment: CUE_REGISTRY, CUE_CACHE_DIR, and
	// where the credentials are. nil is the environment of the process.
	Env []string
	// CacheDir is the folder of the cache if Env does not name one; "" is that of the cue command.
	CacheDir string
	// Insecure are hosts that are reached by plain HTTP, besides those of this machine.
	Insecure []string
	// Transport makes the requests; nil is one as net/http has it.
	Transport http.RoundTripper
	// Now is the clock; nil is that of the machine.
	Now func() time.Time
}

// A Client fetches modules from registries. It has those that packages depend on, through CUE's cache on disk.
type Client struct {
	options Options

	mu sync.Mutex
	// failures are what could not be fetched.
	failures map[module.Version]failure
	// memory has modules where there is no folder for the cache, the oldest first.
	memory []inMemory
}

// failure is why a module could not be fetched, and when it is tried again.
type failure struct {
	err   error
	until time.Time
	delay time.Duration
}

type inMemory struct {
	version module.Version
	files   fs.FS
}

// maxFailures is how many failures are remembered at most.
const maxFailures = 1000

// maxInMemory is how many modules are held in memory at most.
const maxInMemory = 16

// New returns a client. It reads no setting before a module is needed.
func New(o Options) *Client {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Client{options: o, failures: map[module.Version]failure{}}
}

// Module returns the files of a version of a module. path has the major version. It errors with an Error. A
// module that could not be fetched is not asked for again at once, however often it is wanted.
func (c *Client) Module(path, version string) (fs.FS, error) {
	v, err := module.NewVersion(path, version)
	if err != nil || !v.IsCanonical() {
		return nil, errorf(Invalid, "%s %s is not an exact version of a module", path, version)
	}
	c.mu.Lock()
	failed, again := c.failures[v]
	c.mu.Unlock()
	if again && c.options.Now().Before(failed.until) {
		return nil, failed.err
	}
	files, err := c.fetch(v)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		delete(c.failures, v)
		return files, nil
	}
	delay := failureAgain
	if again {
		delay = min(2*failed.delay, failureSeldom)
	}
	if len(c.failures) >= maxFailures {
		clear(c.failures) // each is asked for once more
	}
	c.failures[v] = failure{err, c.options.Now().Add(delay), delay}
	return nil, err
}

// fetch returns the files of a module: from the cache, or from its registry.
func (c *Client) fetch(v module.Version) (fs.FS, error) {
	ctx, cancel := context.WithTimeout(context.Background(), fetchTimeout)
	defer cancel()
	resolver, err := c.resolver()
	if err != nil {
		return nil, err
	}
	host := ""
	if location, ok := resolver.ResolveToLocation(v.BasePath(), v.Version()); ok {
		host = location.Host
	}
	client := modregistry.NewClientWithResolver(checkedResolver{resolver})
	dir, err := c.cacheDir()
	if err != nil {
		return c.fetchToMemory(ctx, client, v, host)
	}
	// A cache remembers errors, so each attempt has its own. What it has is on disk.
	cache, err := modcache.New(client, dir)
	if err != nil {
		return nil, errorf(Invalid, "the folder of the cache of modules cannot be used: %v", err)
	}
	at, err := cache.Fetch(ctx, v)
	if err != nil {
		return nil, of(host, causedBy(ctx, err))
	}
	return fs.Sub(at.FS, at.Dir)
}

// causedBy returns the end of a context in place of what it has caused.
func causedBy(ctx context.Context, err error) error {
	if _, own := errors.AsType[*Error](err); !own && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// fetchToMemory is fetch without a folder for the cache.
func (c *Client) fetchToMemory(ctx context.Context, client *modregistry.Client, v module.Version, host string) (fs.FS, error) {
	if files := c.inMemory(v); files != nil {
		return files, nil
	}
	data, err := download(ctx, client, v)
	if err != nil {
		return nil, of(host, causedBy(ctx, err))
	}
	files, _, err := unpack(data, v.Version())
	if err != nil {
		return nil, of(host, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.memory = append(c.memory, inMemory{v, files})
	c.memory = c.memory[max(0, len(c.memory)-maxInMemory):]
	return files, nil
}

// inMemory returns the files of a module that is held in memory, or nil.
func (c *Client) inMemory(v module.Version) fs.FS {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, known := range c.memory {
		if known.version == v {
			return known.files
		}
	}
	return nil
}

func download(ctx context.Context, client *modregistry.Client, v module.Version) ([]byte, error) {
	found, err := client.GetModule(ctx, v)
	if err != nil {
		return nil, err
	}
	r, err := found.GetZip(ctx)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}

// resolver returns which registry has which module, as the cue command decides it.
func (c *Client) resolver() (*modconfig.Resolver, error) {
	// Which hosts are reached by plain HTTP is known only once the settings are read.
	var hosts []modconfig.Host
	plain := func(host string) bool {
		return slices.ContainsFunc(hosts, func(h modconfig.Host) bool {
			return h.Insecure && (h.Name == host || IsLoopback(h.Name) && IsLoopback(host))
		})
	}
	out, err := modconfig.NewResolver(&modconfig.Config{Env: c.options.Env, Transport: newTransport(c.options.Transport, plain), ClientType: "operetta"})
	if err != nil {
		return nil, errorf(Invalid, "CUE_REGISTRY: %v", err)
	}
	hosts = out.AllHosts()
	return out, nil
}

// cacheDir returns the folder of CUE's cache, which it makes if there is none. It errors if it cannot.
func (c *Client) cacheDir() (string, error) {
	dir := cmp.Or(c.getenv("CUE_CACHE_DIR"), c.options.CacheDir)
	if dir == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return "", err
		}
		dir = filepath.Join(user, "cue")
	}
	if err := os.MkdirAll(filepath.Join(dir, "mod"), 0o700); err != nil {
		return "", err
	}
	return dir, nil
}

func (c *Client) getenv(key string) string {
	if c.options.Env == nil {
		return os.Getenv(key)
	}
	for _, e := range slices.Backward(c.options.Env) {
		if name, value, _ := strings.Cut(e, "="); name == key {
			return value
		}
	}
	return ""
}

// checkedResolver is a resolver of registries whose contents are checked.
type checkedResolver struct{ modregistry.Resolver }

// ResolveToRegistry implements modregistry.Resolver.
func (r checkedResolver) ResolveToRegistry(path, version string) (modregistry.RegistryLocation, error) {
	out, err := r.Resolver.ResolveToRegistry(path, version)
	if err == nil {
		out.Registry = checked{out.Registry}
	}
	return out, err
}
