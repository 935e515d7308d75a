// Command promql runs queries of Prometheus on scrapes. It reads a request as JSON from its standard input,
// and writes an answer to its standard output. It is a module of its own, because Prometheus requires some two
// hundred modules that the product does not need.
//
//	go -C test/promql run . < request.json
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/tsdb"
)

// A request is what to run on what.
type request struct {
	// Rules are groups of rules as Prometheus reads them, in YAML. They are only checked.
	Rules string `json:"rules"`
	// Scrapes are in the order of their times.
	Scrapes []scrape `json:"scrapes"`
	// HonorLabels says what a ServiceMonitor says: of a label that both a series and its target have, that of the series counts.
	HonorLabels bool `json:"honorLabels"`
	// Queries run at the time of the last scrape.
	Queries []string `json:"queries"`
	// Step is the distance in seconds of the times at which they run as well, from the first scrape to the last one; 0 is never.
	Step int64 `json:"step"`
}

// A scrape is what a target has answered.
type scrape struct {
	Unix int64  `json:"unix"`
	Text string `json:"text"`
	// Target are the labels of the target, which each series gets.
	Target map[string]string `json:"target"`
}

// An answer has a result for each query.
type answer struct {
	Results []result `json:"results"`
}

// A result is what came of a query.
type result struct {
	Query string `json:"query"`
	Error string `json:"error,omitempty"`
	// Unmatched are the selectors in it that match no series.
	Unmatched []string `json:"unmatched,omitempty"`
	Samples   []sample `json:"samples,omitempty"`
	// Lines are the series over the time.
	Lines []line `json:"lines,omitempty"`
}

// A line is one series of a result over the time.
type line struct {
	Labels map[string]string `json:"labels"`
	Unix   []int64           `json:"unix"`
	Values []string          `json:"values"`
}

// A sample is one series of a result.
type sample struct {
	Labels map[string]string `json:"labels"`
	Value  string            `json:"value"`
}

// timeout is how long one query may take.
const timeout = 10 * time.Second

// maxSamples is how many samples one query may load.
const maxSamples = 1_000_000

func main() {
	if err := run(context.Background(), os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "promql:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, in io.Reader, out io.Writer) error {
	var req request
	if err := json.NewDecoder(in).Decode(&req); err != nil {
		return fmt.Errorf("reading the request: %w", err)
	}
	queries := parser.NewParser(parser.Options{})
	if _, errs := rulefmt.Parse([]byte(req.Rules), false, model.UTF8Validation, queries, slog.New(slog.DiscardHandler)); len(errs) > 0 {
		return fmt.Errorf("the rules: %w", errors.Join(errs...))
	}
	dir, err := os.MkdirTemp("", "promql-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	db, err := tsdb.Open(dir, nil, nil, tsdb.DefaultOptions(), tsdb.NewDBStats())
	if err != nil {
		return err
	}
	defer db.Close()
	e := evaluation{db: db, honor: req.HonorLabels, parser: queries, engine: promql.NewEngine(promql.EngineOpts{MaxSamples: maxSamples, Timeout: timeout, Parser: queries})}
	if len(req.Scrapes) > 0 {
		e.from = time.Unix(req.Scrapes[0].Unix, 0)
	}
	e.step = time.Duration(req.Step) * time.Second
	for _, s := range req.Scrapes {
		if err := e.store(ctx, s); err != nil {
			return fmt.Errorf("storing a scrape: %w", err)
		}
		e.at = time.Unix(s.Unix, 0)
	}
	var a answer
	for _, q := range req.Queries {
		a.Results = append(a.Results, e.answer(ctx, q))
	}
	return json.NewEncoder(out).Encode(a)
}

// An evaluation has what was scraped, and evaluates queries at a time.
type evaluation struct {
	db     *tsdb.DB
	honor  bool
	parser parser.Parser
	engine *promql.Engine
	// at is when queries run, and from the first time of the others, which are a step apart.
	from, at time.Time
	step     time.Duration
}

// store stores the samples of a scrape.
func (e *evaluation) store(ctx context.Context, s scrape) error {
	app := e.db.Appender(ctx)
	p := textparse.NewPromParser([]byte(s.Text), labels.NewSymbolTable(), false)
	for {
		entry, err := p.Next()
		if errors.Is(err, io.EOF) {
			return app.Commit()
		}
		if err != nil {
			return err
		}
		if entry != textparse.EntrySeries {
			continue
		}
		var l labels.Labels
		p.Labels(&l)
		_, _, value := p.Series()
		if _, err := app.Append(0, e.scraped(l, s.Target), s.Unix*1000, value); err != nil {
			return err
		}
	}
}

// scraped returns the labels under which Prometheus stores a series of a target: what its own function for that does, which others may not call.
func (e *evaluation) scraped(series labels.Labels, target map[string]string) labels.Labels {
	b := labels.NewBuilder(series)
	for _, name := range slices.Sorted(maps.Keys(target)) {
		switch has := series.Get(name); {
		case e.honor && series.Has(name): // also one that is empty
		case has == "":
			b.Set(name, target[name])
		default:
			b.Set(name, target[name]).Set(model.ExportedLabelPrefix+name, has)
		}
	}
	return b.Labels()
}

// answer runs a query, and looks whether each selector in it matches something.
func (e *evaluation) answer(ctx context.Context, query string) result {
	out := result{Query: query}
	expr, err := e.parser.ParseExpr(query)
	if err != nil {
		out.Error = err.Error()
		return out
	}
	parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
		if v, ok := n.(*parser.VectorSelector); ok {
			if found, err := e.query(ctx, v.String()); err != nil || len(found) == 0 {
				out.Unmatched = append(out.Unmatched, v.String())
			}
		}
		return nil
	})
	if out.Samples, err = e.query(ctx, query); err == nil && e.step > 0 {
		out.Lines, err = e.over(ctx, query)
	}
	if err != nil {
		out.Error = err.Error()
	}
	return out
}

// over returns the series of a query over the time.
func (e *evaluation) over(ctx context.Context, query string) ([]line, error) {
	q, err := e.engine.NewRangeQuery(ctx, e.db, nil, query, e.from, e.at, e.step)
	if err != nil {
		return nil, err
	}
	defer q.Close()
	matrix, err := q.Exec(ctx).Matrix()
	if err != nil {
		return nil, err
	}
	var out []line
	for _, s := range matrix {
		l := line{Labels: s.Metric.Map()}
		for _, p := range s.Floats {
			l.Unix, l.Values = append(l.Unix, p.T/1000), append(l.Values, fmt.Sprint(p.F))
		}
		out = append(out, l)
	}
	return out, nil
}

// query returns the samples of a query whose result is a vector or a scalar.
func (e *evaluation) query(ctx context.Context, query string) ([]sample, error) {
	q, err := e.engine.NewInstantQuery(ctx, e.db, nil, query, e.at)
	if err != nil {
		return nil, err
	}
	defer q.Close()
	r := q.Exec(ctx)
	if r.Err != nil {
		return nil, r.Err
	}
	if s, err := r.Scalar(); err == nil {
		return []sample{{Value: fmt.Sprint(s.V)}}, nil
	}
	vector, err := r.Vector()
	if err != nil {
		return nil, err
	}
	var out []sample
	for _, s := range vector {
		out = append(out, sample{Labels: s.Metric.Map(), Value: fmt.Sprint(s.F)})
	}
	return out, nil
}
