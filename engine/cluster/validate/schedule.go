package validate

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// A cronField is one of the five fields of a schedule.
type cronField struct {
	name      string
	low, high int
	words     []string // names that may be used instead of numbers, starting at low
}

var cronFields = []cronField{
	{"minute", 0, 59, nil},
	{"hour", 0, 23, nil},
	{"day of month", 1, 31, nil},
	{"month", 1, 12, []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}},
	{"day of week", 0, 6, []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}},
}

var descriptors = []string{"@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"}

// schedule checks the schedule of a CronJob.
func schedule(at *field.Path, text string) field.ErrorList {
	if strings.HasPrefix(text, "TZ=") || strings.HasPrefix(text, "CRON_TZ=") {
		return field.ErrorList{field.Invalid(at, text, "cannot use TZ or CRON_TZ in schedule, use timeZone field instead")}
	}
	if err := parseSchedule(text); err != nil {
		return field.ErrorList{field.Invalid(at, text, err.Error())}
	}
	return nil
}

func parseSchedule(text string) error {
	if every, ok := strings.CutPrefix(text, "@every "); ok {
		_, err := time.ParseDuration(every)
		return err
	}
	if strings.HasPrefix(text, "@") {
		if !slices.Contains(descriptors, text) {
			return fmt.Errorf("unrecognized descriptor: %s", text)
		}
		return nil
	}
	fields := strings.Fields(text)
	if len(fields) != len(cronFields) {
		return fmt.Errorf("expected exactly %d fields, found %d", len(cronFields), len(fields))
	}
	for i, u := range cronFields {
		for part := range strings.SplitSeq(fields[i], ",") {
			if err := u.parse(part); err != nil {
				return fmt.Errorf("%s: %w", u.name, err)
			}
		}
	}
	return nil
}

// parse checks one item: *, ?, a number or a range, each with an optional step.
func (u cronField) parse(item string) error {
	span, step, stepped := strings.Cut(item, "/")
	if stepped {
		if n, err := strconv.Atoi(step); err != nil || n < 1 {
			return fmt.Errorf("%s: the step is not a positive number", item)
		}
	}
	if span == "*" || span == "?" {
		return nil
	}
	first, last, isRange := strings.Cut(span, "-")
	from, err := u.number(first)
	if err != nil {
		return err
	}
	to := from
	if isRange {
		if to, err = u.number(last); err != nil {
			return err
		}
	}
	if from > to {
		return fmt.Errorf("%s: the beginning of the range is beyond its end", item)
	}
	return nil
}

func (u cronField) number(text string) (int, error) {
	if i := slices.Index(u.words, strings.ToLower(text)); i >= 0 {
		return u.low + i, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < u.low || n > u.high {
		return 0, fmt.Errorf("%q is not between %d and %d", text, u.low, u.high)
	}
	return n, nil
}
