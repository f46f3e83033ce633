-- observe returns State in JSON. The remains of a budget that was lost are not part of it.
CREATE OR REPLACE FUNCTION weir.observe$build(name bytea) RETURNS json LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN s.budget IS NULL THEN '{}' ELSE json_build_object(
        'Window', s.length, 'Index', s.index, 'Term', s.term, 'Limit', s.units, 'Latest', s.latest, 'Before', s.before,
        'Accounts', (
            SELECT json_agg(json_build_object(
                'Member', encode(h.member, 'base64'), 'Holder', encode(h.holder, 'base64'), 'Seq', h.seq, 'Granted', h.granted
            ) ORDER BY h.member, h.holder)
            FROM weir.budget_holders h WHERE h.budget = name),
        'Vouches', (
            SELECT json_agg(json_build_object('Member', encode(v.member, 'base64'), 'List', v.list) ORDER BY v.member)
            FROM weir.budget_vouches v WHERE v.budget = name AND v.term = s.memory),
        'Standings', (
            SELECT json_agg(json_build_object(
                'Member', encode(t.member, 'base64'), 'Seen', t.seen, 'Weight', t.weight, 'Demand', t.demand,
                'Before', t.before, 'Slice', t.slice, 'Next', t.next, 'Told', t.told,
                'Tenants', json_build_object('Met', coalesce(u.met, 0), 'Unmet', coalesce(u.unmet, 0))
            ) ORDER BY t.member)
            FROM weir.budget_members t
            LEFT JOIN weir.budget_tenants u ON u.budget = name AND u.member = t.member AND u.weight = t.weight
            WHERE t.budget = name),
        'Closed', (
            SELECT json_agg(json_build_object('Index', w.index, 'Limit', w.units, 'Granted', w.granted, 'Usage', (
                SELECT json_agg(json_build_object(
                    'Member', encode(u.member, 'base64'), 'Granted', u.had, 'Admitted', u.admitted,
                    'Refused', u.refused, 'Reported', u.reported, 'Complete', u.complete
                ) ORDER BY u.member)
                FROM unnest(w.members, w.had, w.admitted, w.refused, w.reported, w.complete)
                AS u (member, had, admitted, refused, reported, complete)
            )) ORDER BY w.index DESC)
            FROM weir.budget_closed w WHERE w.budget = name)) END
    FROM (SELECT) AS one LEFT JOIN weir.budgets s ON s.budget = name
$$;
