"""The tables of a PostgreSQL catalog as clients know them: their columns, and the functions that queries of them use.

Types are those of DuckDB; ``oid`` is UINTEGER there. Tables without rows of ours are listed, too: a client that looks
for indexes or triggers finds that there are none.
"""

from __future__ import annotations

_NAMES = {"o": "UINTEGER", "t": "VARCHAR", "b": "BOOLEAN", "i": "INTEGER", "s": "SMALLINT", "f": "FLOAT",
          "S": "SMALLINT[]", "O": "UINTEGER[]", "T": "VARCHAR[]", "l": "BIGINT", "z": "TIMESTAMP"}  # fmt: skip

# Each column with a letter for its type.
PG_CATALOG: dict[str, str] = {
    "pg_class": "o:oid t:relname o:relnamespace o:reltype o:reloftype o:relowner o:relam o:relfilenode "
    "o:reltablespace i:relpages f:reltuples i:relallvisible o:reltoastrelid b:relhasindex b:relisshared "
    "t:relpersistence t:relkind s:relnatts s:relchecks b:relhasrules b:relhastriggers b:relhassubclass "
    "b:relrowsecurity b:relforcerowsecurity b:relispopulated t:relreplident b:relispartition o:relrewrite "
    "o:relfrozenxid o:relminmxid T:relacl T:reloptions t:relpartbound l:xmin",
    "pg_attribute": "o:attrelid t:attname o:atttypid i:attstattarget s:attlen s:attnum i:attndims i:attcacheoff "
    "i:atttypmod b:attbyval t:attalign t:attstorage t:attcompression b:attnotnull b:atthasdef b:atthasmissing "
    "t:attidentity t:attgenerated b:attisdropped b:attislocal i:attinhcount o:attcollation T:attacl T:attoptions "
    "T:attfdwoptions t:attmissingval",
    "pg_type": "o:oid t:typname o:typnamespace o:typowner s:typlen b:typbyval t:typtype t:typcategory "
    "b:typispreferred b:typisdefined t:typdelim o:typrelid o:typsubscript o:typelem o:typarray t:typinput t:typoutput "
    "t:typreceive t:typsend t:typmodin t:typmodout t:typanalyze t:typalign t:typstorage b:typnotnull o:typbasetype "
    "i:typtypmod i:typndims o:typcollation t:typdefaultbin t:typdefault T:typacl",
    "pg_namespace": "o:oid t:nspname o:nspowner T:nspacl l:xmin",
    "pg_database": "o:oid t:datname o:datdba i:encoding t:datlocprovider b:datistemplate b:datallowconn "
    "i:datconnlimit o:datfrozenxid o:datminmxid o:dattablespace t:datcollate t:datctype t:daticulocale "
    "t:datcollversion T:datacl",
    "pg_description": "o:objoid o:classoid i:objsubid t:description",
    "pg_constraint": "o:oid t:conname o:connamespace t:contype b:condeferrable b:condeferred b:convalidated "
    "o:conrelid o:contypid o:conindid o:conparentid o:confrelid t:confupdtype t:confdeltype t:confmatchtype "
    "b:conislocal i:coninhcount b:connoinherit S:conkey S:confkey O:conpfeqop O:conppeqop O:conffeqop "
    "S:confdelsetcols O:conexclop t:conbin t:words",
    "pg_index": "o:indexrelid o:indrelid s:indnatts s:indnkeyatts b:indisunique b:indnullsnotdistinct b:indisprimary "
    "b:indisexclusion b:indimmediate b:indisclustered b:indisvalid b:indcheckxmin b:indisready b:indislive "
    "b:indisreplident S:indkey O:indcollation O:indclass S:indoption t:indexprs t:indpred",
    "pg_am": "o:oid t:amname t:amhandler t:amtype",
    "pg_attrdef": "o:oid o:adrelid s:adnum t:adbin t:adsrc",
    "pg_auth_members": "o:oid o:roleid o:member o:grantor b:admin_option",
    "pg_cast": "o:oid o:castsource o:casttarget o:castfunc t:castcontext t:castmethod",
    "pg_collation": "o:oid t:collname o:collnamespace o:collowner t:collprovider b:collisdeterministic "
    "i:collencoding t:collcollate t:collctype t:colliculocale t:collversion",
    "pg_db_role_setting": "o:setdatabase o:setrole T:setconfig",
    "pg_depend": "o:classid o:objid i:objsubid o:refclassid o:refobjid i:refobjsubid t:deptype",
    "pg_enum": "o:oid o:enumtypid f:enumsortorder t:enumlabel",
    "pg_event_trigger": "o:oid t:evtname t:evtevent o:evtowner o:evtfoid t:evtenabled T:evttags",
    "pg_extension": "o:oid t:extname o:extowner o:extnamespace b:extrelocatable t:extversion O:extconfig "
    "T:extcondition",
    "pg_foreign_data_wrapper": "o:oid t:fdwname o:fdwowner o:fdwhandler o:fdwvalidator T:fdwacl T:fdwoptions",
    "pg_foreign_server": "o:oid t:srvname o:srvowner o:srvfdw t:srvtype t:srvversion T:srvacl T:srvoptions",
    "pg_foreign_table": "o:ftrelid o:ftserver T:ftoptions",
    "pg_indexes": "t:schemaname t:tablename t:indexname t:tablespace t:indexdef",
    "pg_inherits": "o:inhrelid o:inhparent i:inhseqno b:inhdetachpending",
    "pg_language": "o:oid t:lanname o:lanowner b:lanispl b:lanpltrusted "
    "o:lanplcallfoid o:laninline o:lanvalidator T:lanacl",
    "pg_locks": "t:locktype o:database o:relation i:pid t:mode b:granted",
    "pg_matviews": "t:schemaname t:matviewname t:matviewowner t:tablespace b:hasindexes b:ispopulated t:definition",
    "pg_opclass": "o:oid o:opcmethod t:opcname o:opcnamespace o:opcowner "
    "o:opcfamily o:opcintype b:opcdefault o:opckeytype",
    "pg_operator": "o:oid t:oprname o:oprnamespace o:oprowner t:oprkind o:oprleft o:oprright o:oprresult",
    "pg_partitioned_table": "o:partrelid t:partstrat s:partnatts o:partdefid S:partattrs O:partclass t:partexprs",
    "pg_policy": "o:oid t:polname o:polrelid t:polcmd b:polpermissive O:polroles t:polqual t:polwithcheck",
    "pg_proc": "o:oid t:proname o:pronamespace o:proowner o:prolang f:procost f:prorows o:provariadic t:prokind "
    "b:prosecdef b:proleakproof b:proisstrict b:proretset t:provolatile t:proparallel s:pronargs s:pronargdefaults "
    "o:prorettype O:proargtypes O:proallargtypes T:proargmodes T:proargnames t:prosrc T:proconfig T:proacl b:proisagg",
    "pg_publication": "o:oid t:pubname o:pubowner b:puballtables b:pubinsert b:pubupdate b:pubdelete b:pubtruncate",
    "pg_publication_namespace": "o:oid o:pnpubid o:pnnspid",
    "pg_publication_rel": "o:oid o:prpubid o:prrelid t:prqual S:prattrs",
    "pg_range": "o:rngtypid o:rngsubtype o:rngmultitypid o:rngcollation o:rngsubopc t:rngcanonical t:rngsubdiff",
    "pg_rewrite": "o:oid t:rulename o:ev_class t:ev_type t:ev_enabled b:is_instead t:ev_qual t:ev_action",
    "pg_sequence": "o:seqrelid o:seqtypid l:seqstart l:seqincrement l:seqmax l:seqmin l:seqcache b:seqcycle",
    "pg_sequences": "t:schemaname t:sequencename t:sequenceowner l:start_value l:min_value l:max_value l:last_value",
    "pg_shdescription": "o:objoid o:classoid t:description",
    "pg_stat_activity": "o:datid t:datname i:pid t:usename t:application_name t:state t:query",
    "pg_stat_user_tables": "o:relid t:schemaname t:relname l:n_live_tup l:n_dead_tup z:last_analyze",
    "pg_statistic_ext": "o:oid o:stxrelid t:stxname o:stxnamespace o:stxowner i:stxstattarget "
    "S:stxkeys T:stxkind t:stxexprs",
    "pg_tables": "t:schemaname t:tablename t:tableowner t:tablespace b:hasindexes "
    "b:hasrules b:hastriggers b:rowsecurity",
    "pg_tablespace": "o:oid t:spcname o:spcowner T:spcacl T:spcoptions",
    "pg_timezone_names": "t:name t:abbrev t:utc_offset b:is_dst",
    "pg_trigger": "o:oid o:tgrelid o:tgparentid t:tgname o:tgfoid s:tgtype t:tgenabled b:tgisinternal o:tgconstrrelid "
    "o:tgconstrindid o:tgconstraint b:tgdeferrable b:tginitdeferred s:tgnargs S:tgattr t:tgqual",
    "pg_views": "t:schemaname t:viewname t:viewowner t:definition",
}
INFORMATION_SCHEMA: dict[str, str] = {
    "schemata": "t:catalog_name t:schema_name t:schema_owner t:default_character_set_catalog "
    "t:default_character_set_schema t:default_character_set_name t:sql_path",
    "tables": "t:table_catalog t:table_schema t:table_name t:table_type t:self_referencing_column_name "
    "t:reference_generation t:user_defined_type_catalog t:user_defined_type_schema t:user_defined_type_name "
    "t:is_insertable_into t:is_typed t:commit_action",
    "columns": "t:table_catalog t:table_schema t:table_name t:column_name i:ordinal_position t:column_default "
    "t:is_nullable t:data_type i:character_maximum_length i:character_octet_length i:numeric_precision "
    "i:numeric_precision_radix i:numeric_scale i:datetime_precision t:interval_type i:interval_precision "
    "t:character_set_name t:collation_name t:domain_catalog t:domain_schema t:domain_name t:udt_catalog t:udt_schema "
    "t:udt_name i:maximum_cardinality t:dtd_identifier t:is_identity t:identity_generation t:identity_start "
    "t:identity_increment t:is_generated t:generation_expression t:is_updatable",
    "table_constraints": "t:constraint_catalog t:constraint_schema t:constraint_name t:table_catalog t:table_schema "
    "t:table_name t:constraint_type t:is_deferrable t:initially_deferred t:enforced",
    "key_column_usage": "t:constraint_catalog t:constraint_schema t:constraint_name t:table_catalog t:table_schema "
    "t:table_name t:column_name i:ordinal_position i:position_in_unique_constraint",
    "constraint_column_usage": "t:table_catalog t:table_schema t:table_name t:column_name t:constraint_catalog "
    "t:constraint_schema t:constraint_name",
    "referential_constraints": "t:constraint_catalog t:constraint_schema t:constraint_name "
    "t:unique_constraint_catalog t:unique_constraint_schema t:unique_constraint_name t:match_option t:update_rule "
    "t:delete_rule",
    "table_privileges": "t:grantor t:grantee t:table_catalog t:table_schema t:table_name t:privilege_type "
    "t:is_grantable t:with_hierarchy",
    "role_table_grants": "t:grantor t:grantee t:table_catalog t:table_schema t:table_name t:privilege_type",
    "routines": "t:specific_catalog t:specific_schema t:specific_name t:routine_catalog t:routine_schema "
    "t:routine_name t:routine_type t:data_type",
    "sequences": "t:sequence_catalog t:sequence_schema t:sequence_name t:data_type",
    "triggers": "t:trigger_catalog t:trigger_schema t:trigger_name t:event_object_schema t:event_object_table",
    "views": "t:table_catalog t:table_schema t:table_name t:view_definition t:check_option t:is_updatable",
}

# Functions that are made in the database: name, parameters and what it gives. ``pg`` is the schema of the tables.
MACROS: tuple[tuple[str, str, str], ...] = (
    ("format_type", "t, m", "(SELECT max(y.title) FROM pg.titles y WHERE y.oid = t)"),
    ("find_table", "words", "(SELECT max(c.oid) FROM pg.pg_class c WHERE c.relname = lower(replace(list_last("
     "string_split(words, '.')), '\"', '')))"),
    ("name_table", "number", "coalesce((SELECT max(c.relname) FROM pg.pg_class c WHERE c.oid = number), "
     "number::VARCHAR)"),
    ("find_type", "words", "(SELECT max(y.oid) FROM pg.titles y WHERE words IN (y.title, y.name, "
     "'pg_catalog.' || y.name))"),
    ("name_type", "number", "coalesce((SELECT max(y.title) FROM pg.titles y WHERE y.oid = number), "
     "number::VARCHAR)"),
    ("find_schema", "words", "(SELECT max(n.oid) FROM pg.pg_namespace n WHERE n.nspname = words)"),
    ("name_schema", "number", "(SELECT max(n.nspname) FROM pg.pg_namespace n WHERE n.oid = number)"),
    ("describe_object", "object, kind", "(SELECT max(d.description) FROM pg.pg_description d "
     "WHERE d.objoid = object AND d.objsubid = 0)"),
    ("describe_column", "object, number", "(SELECT max(d.description) FROM pg.pg_description d "
     "WHERE d.objoid = object AND d.objsubid = number)"),
    ("write_constraint", "number", "(SELECT max(k.words) FROM pg.pg_constraint k WHERE k.oid = number)"),
    ("give_first", "first, second", "first"),
    ("give_true", "first, second", "true"),
    ("give_null", "first", "NULL::VARCHAR"),
    ("give_zero", "first", "0::BIGINT"),
    ("count_list", "list, dimension", "nullif(len(list), 0)"),
)  # fmt: skip


def read_columns(described: str) -> list[tuple[str, str]]:
    """Names and types of the columns of a table above."""
    pairs = (each.split(":") for each in described.split())
    return [(name, _NAMES[letter]) for letter, name in pairs]
