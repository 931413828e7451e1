package migrations

import "context"

// UpTo is Up of a program that knows other steps.
func UpTo(ctx context.Context, db DB, schema string, all []Step) ([]Step, error) {
	return steps(all).up(ctx, db, schema)
}
