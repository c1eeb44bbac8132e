package neighbourlab

import (
	"slices"

	"streamproxy/bench/internal/result"
)

// Report is what runs have found, each of them about some attacks.
type Report struct {
	Program string           `json:"program"`
	Runs    []*result.Report `json:"runs"`
}

// Quiet is the title of the cell without an attack.
const Quiet = "none"

const fileName = "neighbours.json"

// Load reads a folder's report, an empty one if there is none.
func Load(folder string) (*Report, error) {
	r := &Report{Program: "neighbours"}
	if err := result.Read(folder, fileName, r); err != nil {
		return nil, err
	}
	return r, nil
}

// Add appends a run. What it has measured replaces what earlier runs had about the same attacks
// over the same round trip; a run of which no attack is left goes.
func (r *Report) Add(run *result.Report) {
	for _, earlier := range r.Runs {
		earlier.Cells = slices.DeleteFunc(earlier.Cells, func(c result.Cell) bool {
			return c.Title != Quiet && find(run, c.Title, c.Trip) != nil
		})
	}
	r.Runs = slices.DeleteFunc(r.Runs, func(run *result.Report) bool {
		return !slices.ContainsFunc(run.Cells, func(c result.Cell) bool { return c.Title != Quiet })
	})
	r.Runs = append(r.Runs, run)
}

func find(run *result.Report, title, trip string) *result.Cell {
	for i := range run.Cells {
		if c := &run.Cells[i]; c.Title == title && c.Trip == trip {
			return c
		}
	}
	return nil
}

// Save writes the report into a folder.
func (r *Report) Save(folder string) (path string, err error) {
	return result.Write(folder, fileName, r)
}
